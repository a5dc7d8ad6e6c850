//! Findings: what limits this database now, after ADDM.
//!
//! Input: a [`Period`]. Output: findings, largest share of DB time first. Each says what was seen, its share,
//! what to do, what that can bring at most, and how sure this is. Rules are small functions; a rule that lacks
//! its figures says nothing.

mod block_cache;
mod capture;
mod commit;
mod finding;
mod keepers;
mod load;
mod machine;
mod reads;
mod seawall;

pub use finding::{Finding, Kind, Sure, WORTH, factor_without};

use crate::period::Period;

/// A rule and its name.
type Rule = (&'static str, fn(&Period) -> Option<Finding>);

/// All of them. Each has a fixture that raises it and one that does not.
const RULES: [Rule; 23] = [
    ("waits for the log", commit::waits_for_the_log),
    ("waits for reads", reads::waits_for_reads),
    ("locks", load::locks),
    ("processor", load::processor),
    ("concurrency", load::concurrency),
    ("one statement", load::one_statement),
    ("temporary files", load::temporary_files),
    ("checkpoints for want of log", commit::checkpoints_for_want_of_log),
    ("full pages", commit::full_pages),
    ("recovery too long", commit::recovery_too_long),
    ("log full", seawall::log_full),
    ("around the log", seawall::around_the_log),
    ("one keeper is slow", keepers::one_is_slow),
    ("round trip to the keepers", keepers::round_trip),
    ("short of copies", keepers::short_of_copies),
    ("alone", keepers::alone),
    ("block cache too small", block_cache::too_small),
    ("block cache too large", block_cache::too_large),
    ("block cache not serving", block_cache::not_serving),
    ("disk is busy", machine::disk_is_busy),
    ("memory is short", machine::memory_is_short),
    ("idle", load::idle),
    ("what was not captured", capture::what_was_not_captured),
];

/// All findings.
pub fn findings(period: &Period) -> Vec<Finding> {
    let mut found: Vec<_> = RULES.iter().filter_map(|(_, rule)| rule(period)).collect();
    let rank = |f: &Finding| (f.kind == Kind::Information, -(f.share.unwrap_or(0.0) * 1e6) as i64);
    found.sort_by_key(rank);
    found
}

#[cfg(test)]
mod tests;
