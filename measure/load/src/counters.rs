//! What a database counts about itself, before and after a run.

use serde::{Deserialize, Serialize};

/// Counters, or what they grew by. Absent: this database does not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Bytes of redo: PostgreSQL's WAL position, InnoDB's log.
    pub redo_bytes: Option<u64>,
    /// Blocks looked at, from memory or not.
    pub logical_reads: Option<u64>,
    /// Blocks that were not in the database's own cache.
    pub physical_reads: Option<u64>,
    /// Transactions that ended, committed or rolled back, as the database counts them.
    pub transactions: Option<u64>,
}

impl Counters {
    /// What was added since `before`. A counter that went back (a restart) says nothing.
    pub fn since(self, before: Counters) -> Counters {
        let grown = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        Counters {
            redo_bytes: grown(self.redo_bytes, before.redo_bytes),
            logical_reads: grown(self.logical_reads, before.logical_reads),
            physical_reads: grown(self.physical_reads, before.physical_reads),
            transactions: grown(self.transactions, before.transactions),
        }
    }
}

/// How much redo a run of so many seconds wrote, for people.
pub fn redo_line(bytes: u64, seconds: f64) -> String {
    let megabytes = bytes as f64 / 1e6;
    format!("redo: {megabytes:.1} MB, {:.2} MB/s", megabytes / seconds.max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::Counters;

    #[test]
    fn a_counter_that_went_back_says_nothing() {
        let before = Counters { redo_bytes: Some(10), transactions: Some(5), ..Counters::default() };
        let now = Counters { redo_bytes: Some(30), transactions: Some(4), ..Counters::default() };
        assert_eq!(now.since(before), Counters { redo_bytes: Some(20), ..Counters::default() });
    }
}
