//! Advisories: what another size would have done.
//!
//! Estimates by stated arithmetic on what was counted, never by a model of the database. Each says what it
//! assumes.

use seawall_page::scale::{bytes, digits};
use seawall_page::{Section, Table};

use super::block_cache;
use super::words::{duration, percent};
use crate::period::{Period, Seawall};

/// Sizes that are looked at, in relation to the present one.
const FACTORS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];

/// All of them.
pub fn advisories(period: &Period) -> Section {
    let mut section = Section::new("Advisories");
    log_size(&mut section, period);
    block_cache::advisory(&mut section, period);
    exposed(&mut section, period);
    checkpoints(&mut section, period);
    section
}

/// How large Seawall's log should be.
fn log_size(section: &mut Section, period: &Period) {
    let Some(part) = &period.seawall else { return };
    let size = part.log.get("size").copied().filter(|size| *size > 0.0);
    let (Some(size), false) = (size, part.fill.is_empty()) else { return };
    let full = part.waits.iter().find(|w| w.name == "log full").map_or(0.0, |w| w.count);
    section.words(format!(
        "Seawall's log: {} rounds of destaging; at the fullest it was {} % full when one began, and the log \
         was full for {} writes. A smaller log begins to destage sooner, so its figure is an upper bound; \
         how much a full log would have needed is not known, so there the figure of a larger one is a lower \
         bound.",
        digits(rounds(part)),
        highest(part),
        digits(full)
    ));
    let head = [
        "<Size of the log",
        "",
        "Fullest",
        "% of rounds that would have found it full",
        "Burst it carries at the busiest rate",
    ];
    let mut table = Table::new("Log size advisory", &head);
    for factor in FACTORS {
        table.row([
            bytes(size * factor),
            if (factor - 1.0).abs() < 1e-9 { "now".into() } else { format!("×{factor}") },
            format!("{:.0} %", (highest(part) as f64 / factor).min(100.0)),
            percent(Some(share_above(part, factor * 100.0, full > 0.0 && factor <= 1.0))),
            burst(part, size * factor),
        ]);
    }
    section.table(table);
}

fn rounds(part: &Seawall) -> f64 {
    part.fill.iter().map(|(_, n)| *n as f64).sum()
}

/// The upper end of the highest step, percent.
fn highest(part: &Seawall) -> u64 {
    part.fill.last().map_or(0, |(percent, _)| (percent + 5).min(100))
}

/// Percent of the rounds that began with more in the log than this percentage of its size.
fn share_above(part: &Seawall, limit: f64, was_full: bool) -> f64 {
    // At the present size only a step that ends at 100 % can have been full.
    let above = |percent: u64| (percent + 5) as f64 > limit || was_full && percent + 5 >= 100;
    let above: f64 = part.fill.iter().filter(|(percent, _)| above(*percent)).map(|(_, n)| *n as f64).sum();
    above * 100.0 / rounds(part).max(1.0)
}

/// Seconds until the log is full if nothing were destaged meanwhile.
fn burst(part: &Seawall, size: f64) -> String {
    if part.logged_peak > 0.0 {
        format!("at least {}", duration(size / part.logged_peak))
    } else {
        "–".into()
    }
}

/// What a crash would have cost.
fn exposed(section: &mut Section, period: &Period) {
    let Some(exposed) = period.exposed else { return };
    let takes = exposed.time.map_or_else(String::new, |timed| {
        format!(
            ": {} to recover, as estimated, where {} are wanted",
            duration(timed.seconds),
            duration(timed.goal)
        )
    });
    section.words(format!(
        "A crash at the worst of the snapshots would have left {} of redo{takes}.",
        bytes(exposed.redo)
    ));
}

/// How far apart checkpoints would be with another `max_wal_size` (PostgreSQL's documentation, "WAL
/// Configuration": one is asked for when the log since the last has reached max_wal_size / (1 +
/// checkpoint_completion_target)).
fn checkpoints(section: &mut Section, period: &Period) {
    let Some(plan) = Plan::of(period) else { return };
    section.words(format!(
        "Checkpoints: {} of redo a second; {} came by time, {} were requested. A checkpoint comes after checkpoint_timeout, or \
         sooner when the log has reached max_wal_size / (1 + checkpoint_completion_target). Full-page images become fewer \
         with checkpoints further apart, so larger sizes do better than this.",
        bytes(plan.rate),
        digits(period.counters.get("checkpoints timed").copied().unwrap_or(0.0)),
        digits(period.counters.get("checkpoints requested").copied().unwrap_or(0.0)),
    ));
    let head = ["<max_wal_size", "", "A checkpoint every", "Checkpoints an hour", "<Caused by"];
    let mut table = Table::new("Checkpoint advisory", &head);
    for factor in FACTORS {
        let size = plan.max * factor;
        let word = if (factor - 1.0).abs() < 1e-9 { "now".to_owned() } else { format!("×{factor}") };
        table.row(plan.row(size, word));
    }
    let enough = plan.rate * plan.timeout * (1.0 + plan.target);
    if enough > plan.max {
        table.row(plan.row(enough * 1.01, "enough".into()));
    }
    section.table(table);
}

struct Plan {
    /// Bytes of redo a second.
    rate: f64,
    max: f64,
    timeout: f64,
    target: f64,
}

impl Plan {
    fn of(period: &Period) -> Option<Self> {
        let rate = period.per_second(period.counters.get("wal bytes").copied().filter(|n| *n > 0.0)?);
        // pg_settings shows it in MB, the timeout in seconds.
        let max = period.settings_number("max_wal_size")? * 1024.0 * 1024.0;
        let timeout = period.settings_number("checkpoint_timeout")?;
        let target = period.settings_number("checkpoint_completion_target")?;
        Some(Self { rate, max, timeout, target })
    }

    fn row(&self, size: f64, word: String) -> [String; 5] {
        let by_size = size / (1.0 + self.target) / self.rate;
        let every = by_size.min(self.timeout);
        let cause = if by_size < self.timeout { "max_wal_size" } else { "checkpoint_timeout" };
        [bytes(size), word, duration(every), digits(3600.0 / every), cause.into()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(period: &Period) -> String {
        let document = seawall_page::Document { sections: vec![advisories(period)], ..Default::default() };
        seawall_page::text(&document)
    }

    #[test]
    fn a_log_that_was_never_half_full_could_be_half_the_size() {
        let part = Seawall {
            log: [("size".to_owned(), 1024.0 * 1024.0 * 1024.0)].into(),
            fill: vec![(5, 90), (40, 10)],
            logged_peak: 64.0 * 1024.0 * 1024.0,
            ..Seawall::default()
        };
        assert_eq!(share_above(&part, 50.0, false), 0.0);
        assert_eq!(share_above(&part, 25.0, false), 10.0);
        let text = text(&Period { seawall: Some(part), elapsed_s: 60.0, ..Period::default() });
        let row =
            |name: &str| text.lines().find(|l| l.trim_start().starts_with(name)).unwrap_or("").to_owned();
        assert!(row("512 MiB").contains("90 %") && row("512 MiB").contains("0.0"), "{text}");
        assert!(row("1 GiB").contains("now") && row("1 GiB").contains("at least 16 s"), "{text}");
    }

    #[test]
    fn a_log_that_was_full_is_too_small_at_its_size() {
        let part = Seawall { fill: vec![(50, 5), (95, 5)], ..Seawall::default() };
        assert_eq!(share_above(&part, 100.0, true), 50.0);
        assert_eq!(share_above(&part, 100.0, false), 0.0);
        assert_eq!(share_above(&part, 200.0, false), 0.0);
    }

    #[test]
    fn checkpoints_come_by_size_until_the_log_is_large_enough() {
        let mut period = Period { elapsed_s: 100.0, ..Period::default() };
        assert!(text(&period).is_empty() || !text(&period).contains("max_wal_size"));
        let mib = 1024.0 * 1024.0;
        period.counters.insert("wal bytes".into(), 1000.0 * mib);
        let set = [
            ("max_wal_size", "1024 MB"),
            ("checkpoint_timeout", "300 s"),
            ("checkpoint_completion_target", "0.9"),
        ];
        period.settings.extend(set.map(|(n, v)| (n.to_owned(), v.to_owned())));
        let text = text(&period);
        // 1 GiB / 1.9 at 10 MiB a second.
        let now = text.lines().find(|l| l.contains(" now ")).expect("a row");
        assert!(now.contains("53.9 s") && now.contains("66.8") && now.ends_with("max_wal_size"), "{text}");
        let enough = text.lines().find(|l| l.contains("enough")).expect("a row");
        assert!(enough.contains("5.62 GiB") && enough.ends_with("checkpoint_timeout"), "{text}");
    }
}
