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
    /// Seconds between two samples, on average.
    pub interval_s: f64,
    /// Sessions of clients, all together.
    pub active: u64,
}

impl Sampled {
    /// Adds them up.
    pub fn of(samples: &Samples) -> Self {
        let mut this = Self::default();
        if let ([first, .., last], n) = (samples.ticks.as_slice(), samples.ticks.len()) {
            this.interval_s = (last - first) as f64 / 1000.0 / (n - 1) as f64;
        }
        for sample in &samples.samples {
            let Name { name, class } = names::postgres(&sample.wait_type, &sample.wait_event);
            // The log's write in a process of the server's own is not a session's wait for it.
            let name = if !sample.foreground && class == "Commit" { "log file parallel write" } else { name };
            let into = if sample.foreground { &mut this.foreground } else { &mut this.background };
            let seen = into.entry((name, class)).or_default();
            seen.sessions += u64::from(sample.sessions);
            let native = [sample.wait_type.as_str(), sample.wait_event.as_str()].join(":");
            if native.len() > 1 && !seen.native.contains(&native) {
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
