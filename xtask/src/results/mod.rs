//! `docs/results/RESULTS.md`: what tried to break Seawall, how often, and what came of it. Written from the campaigns'
//! own results and never by hand; a campaign whose result is missing or makes no sense is said to be.
//!
//! Input: a directory with the results that [`CAMPAIGNS`] names, as `vm.json` (any of them), and `powercuts-*.json` of
//! campaigns that were carried out apart; and the page as it is, whose section stays where there is no new result. Output:
//! the page. Not handled here: whether the results are of this revision; the page says when the newest of each kind was
//! written.

mod campaigns;
mod figures;
mod power_cuts;

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use campaigns::{CAMPAIGNS, Campaign};
use power_cuts::{add_totals, parts};

/// The page, from the root of the tree.
pub const RESULTS_PAGE: &str = "docs/results/RESULTS.md";

const HEAD: &str = "# Results\n\nWhat tried to break the promises of [the failure model](../internals/FAILURE_MODEL.md), how often, and \
what came of it. This page is written by `cargo run -p xtask -- results` from what the campaigns said; `make soak` \
runs them. A figure of nought under *lost* or *violations* counts only beside the control that shows that the same \
test finds a loss where there is one.\n";

/// The page, from the results in `dir`, and where there is none from the page as it is.
pub fn results_page(dir: &Path, now: &str) -> String {
    let page = CAMPAIGNS.iter().fold(HEAD.to_owned(), |page, campaign| page + &campaign.section(dir, now));
    page + &others(now)
}

/// Sections of the page that are no campaign's: written by hand, and kept.
fn others(now: &str) -> String {
    let sections = now.split("\n## ").skip(1);
    let is_known = |section: &&str| CAMPAIGNS.iter().any(|c| section.lines().next() == Some(c.title));
    let kept =
        sections.filter(|section| !is_known(section)).map(|section| format!("\n## {}\n", section.trim_end()));
    kept.collect()
}

impl Campaign {
    fn section(&self, dir: &Path, now: &str) -> String {
        let (mut found, mut newest) = (None, None);
        for path in std::iter::once(dir.join(self.file)).chain(parts(dir, self.file)) {
            let Some(part) = read(&path) else { continue };
            match &mut found {
                Some(whole) => add_totals(whole, &part),
                None => found = Some(part),
            }
            newest = newest.max(std::fs::metadata(&path).and_then(|m| m.modified()).ok());
        }
        let told = found.as_ref().and_then(self.rows).map(|rows| table(&rows) + &written(newest));
        let former = || if dir.join(self.file).exists() { None } else { self.figures_of(now) };
        let body = told
            .or_else(former)
            .unwrap_or_else(|| format!("No result: `{}` is missing or is not one.\n", self.file));
        format!("\n## {}\n\n{}\n\n{body}", self.title, self.about)
    }

    /// What a page says of this campaign, from its table on.
    fn figures_of(&self, page: &str) -> Option<String> {
        let (_, section) = page.split_once(&format!("## {}\n", self.title))?;
        let section = section.split("\n## ").next()?;
        Some(section[section.find("\n| ")? + 1..].to_owned())
    }
}

fn read(path: &Path) -> Option<Value> {
    std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok())
}

/// The first row is the head.
fn table(rows: &[Vec<String>]) -> String {
    let line = |row: &Vec<String>| format!("| {} |\n", row.join(" | "));
    let rule = |head: &Vec<String>| format!("|{}\n", "---|".repeat(head.len()));
    let head = rows.first().map_or_else(String::new, |head| line(head) + &rule(head));
    rows.iter().skip(1).fold(head, |out, row| out + &line(row))
}

/// The line that says when a result was written; none if that is not known.
fn written(at: Option<SystemTime>) -> String {
    let since = at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.map_or_else(String::new, |since| format!("\nWritten {}.\n", day(since)))
}

/// The day so long after 1 January 1970, as days and years are named everywhere (Howard Hinnant's civil_from_days).
fn day(since: Duration) -> String {
    let days = since.as_secs() / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + u64::from(month <= 2))
}

#[cfg(test)]
mod tests;
