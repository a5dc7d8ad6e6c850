//! What a run did.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{CommitMode, Conf, Layout};
use crate::counters::Counters;
use crate::latency::Summary;
use crate::pace::OpenLoop;

/// The result of a run, or of its finished part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// `postgres`, `mariadb`, `sqlite`.
    pub database: String,
    /// Its version, in its own words.
    pub version: String,
    /// When sessions waited for durability.
    pub commit: CommitMode,
    /// The parameters.
    pub conf: Conf,
    /// The tables of each schema.
    pub layout: Layout,
    /// Sessions.
    pub sessions: u32,
    /// From the first operation's start to the last one's end, with the last wait for durability.
    pub seconds: f64,
    /// SLOB operations: updates, reads and scans that were acknowledged.
    pub operations: u64,
    /// Operations a second.
    pub operations_per_second: f64,
    /// Transactions that were committed: one an operation, or one a session.
    pub transactions: u64,
    /// Transactions a second.
    pub transactions_per_second: f64,
    /// Rows, by what was done with them.
    pub rows: RowCounts,
    /// Bytes of redo the database wrote during the run, whoever caused them.
    pub redo_bytes: Option<u64>,
    /// All that the database counted.
    pub counters: Counters,
    /// All operations. In an open loop from their intended start: waiting for one's turn counts.
    pub latency: Summary,
    /// Updates alone.
    pub update_latency: Summary,
    /// Reads alone.
    pub read_latency: Summary,
    /// Scans alone.
    pub scan_latency: Summary,
    /// All operations from when they were sent. The same as `latency` in a closed loop.
    pub service: Summary,
    /// Waits for durability apart from operations: of the asynchronous mode, and of one transaction's commit.
    pub waits: Summary,
    /// The schedule, in an open loop.
    pub open_loop: Option<OpenLoop>,
    /// Seconds of think time, all sessions together.
    pub think_seconds: f64,
    /// Transactions over time.
    #[serde(default)]
    pub windows: Windows,
    /// Operations that were undone by a conflict (deadlock, lock timeout) and given up.
    pub conflicts: u64,
    /// Updates that were sent and never acknowledged: they may have happened or not.
    pub unacknowledged: u64,
    /// What went wrong; empty when the run is whole.
    pub errors: Vec<String>,
}

impl Outcome {
    /// Whether every session worked to its end.
    pub fn is_whole(&self) -> bool {
        self.errors.is_empty()
    }
}

/// Transactions that were acknowledged in windows of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// When the first one began, microseconds since 1970.
    pub from_us: u64,
    /// Their length, microseconds.
    pub every_us: u64,
    /// Transactions in each.
    pub counts: Vec<u64>,
}

impl Windows {
    /// A quarter of a second.
    pub const EVERY_US: u64 = 250_000;

    /// Counts some `after` the first window began.
    pub fn count(&mut self, after: Duration, transactions: u64) {
        let at = (after.as_micros() as u64 / Self::EVERY_US) as usize;
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += transactions;
    }

    /// Adds what another one counted from the same moment on.
    pub fn add(&mut self, other: &Self) {
        for (at, count) in (0..).zip(&other.counts) {
            self.count(Duration::from_micros(at * Self::EVERY_US), *count);
        }
    }
}

/// Rows, by what was done with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowCounts {
    /// Read through the index.
    pub read: u64,
    /// Updated.
    pub updated: u64,
    /// Read by scans.
    pub scanned: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_counted_from_one_moment_on() {
        let (mut one, mut other) = (Windows::default(), Windows::default());
        one.count(Duration::from_millis(10), 3);
        one.count(Duration::from_millis(600), 4);
        other.count(Duration::from_millis(1100), 5);
        one.add(&other);
        assert_eq!(one.counts, [3, 0, 4, 0, 5]);
    }
}
