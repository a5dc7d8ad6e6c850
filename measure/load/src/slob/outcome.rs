//! What a run did.

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
