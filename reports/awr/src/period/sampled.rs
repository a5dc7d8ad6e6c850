//! Activity samples added up.

use std::collections::BTreeMap;

use crate::names::{self, Name};
use crate::repository::Samples;

/// What was seen under one name.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Sessions, summed over the samples.
    pub sessions: u64,
    /// The database's own names.
    pub native: Vec<String>,
}

/// All samples of a period by name.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    /// Sessions of clients.
    pub foreground: BTreeMap<(&'static str, &'static str), Seen>,
    /// The server's own processes.
    pub background: BTreeMap<(&'static str, &'static str), Seen>,
    /// Seconds between two samples, the median.
    pub interval_s: f64,
    /// Sessions of clients, all together.
    pub active: u64,
}

impl Sampled {
    /// Adds them up.
    pub fn of(samples: &Samples) -> Self {
        let mut this = Self { interval_s: interval_s(&samples.ticks), ..Self::default() };
        for sample in &samples.samples {
            let Name { name, class } = names::sampled(&sample.wait_type, &sample.wait_event);
            // The log's write in a process of the server's own is not a session's wait for it.
            let name = if !sample.foreground && class == "Commit" { "log file parallel write" } else { name };
            let into = if sample.foreground { &mut this.foreground } else { &mut this.background };
            let seen = into.entry((name, class)).or_default();
            seen.sessions += u64::from(sample.sessions);
            let native = native(&sample.wait_type, &sample.wait_event);
            if !native.is_empty() && !seen.native.contains(&native) {
                seen.native.push(native);
            }
            this.active += u64::from(sample.sessions) * u64::from(sample.foreground);
        }
        this
    }

    /// Sessions × seconds, as far as samples can tell.
    pub fn db_time_s(&self) -> Option<f64> {
        (self.interval_s > 0.0).then_some(self.active as f64 * self.interval_s)
    }
}

/// The database's own words for what was seen.
fn native(wait_type: &str, wait_event: &str) -> String {
    match wait_type {
        _ if wait_event.is_empty() => String::new(),
        "mariadb wait" | "redis" => wait_event.to_owned(),
        _ => format!("{}:{wait_event}", wait_type.trim_start_matches("mariadb ")),
    }
}

/// The median: a gap, or a clock that jumped, is no long second.
fn interval_s(ticks: &[i64]) -> f64 {
    let mut apart: Vec<_> = ticks.windows(2).map(|pair| pair[1] - pair[0]).collect();
    apart.sort_unstable();
    apart.get(apart.len() / 2).map_or(0.0, |ms| *ms as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_between_samples_is_no_time_that_was_seen() {
        assert_eq!(interval_s(&[0, 1000, 2000, 3_600_000, 3_601_000]), 1.0);
        assert_eq!((interval_s(&[]), interval_s(&[5])), (0.0, 0.0));
    }

    #[test]
    fn the_databases_own_words_stand_beside_the_name() {
        assert_eq!(native("IO", "WALSync"), "IO:WALSync");
        assert_eq!(native("mariadb state", "Commit"), "state:Commit");
        assert_eq!((native("", ""), native("redis", "main disk")), (String::new(), "main disk".into()));
    }
}
