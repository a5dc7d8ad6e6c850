//! What the log received during one load: the bytes of its records, from the pool's own numbers.

use crate::lab::Lab;

/// Numbers of records before and after; 0 where the pool could not be asked.
pub struct Written {
    first: u64,
    last: u64,
}

impl Written {
    /// Before the load.
    pub fn start(lab: &Lab) -> Self {
        let first = lab.pool.last_lsn().unwrap_or(0);
        Self { first, last: first }
    }

    /// After it.
    pub fn stop(&mut self, lab: &Lab) {
        self.last = lab.pool.last_lsn().unwrap_or(self.first);
    }

    /// Records that were written.
    pub fn records(&self) -> u64 {
        self.last.saturating_sub(self.first)
    }
}
