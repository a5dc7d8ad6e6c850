//! How a disk is, and what its guests asked for.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

/// Requests that were answered, by their kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Reads.
    pub reads: u64,
    /// What they asked for.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// What they brought.
    pub written_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Discards and writes of zeros.
    pub discards: u64,
}

/// How a disk is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Its size.
    pub bytes: u64,
    /// Queues that a guest uses; 0: there is no guest.
    pub queues: usize,
    /// What its guests have asked for since it is served.
    pub counted: Counted,
}

/// The same as [`Counted`], while they are counted.
#[derive(Default)]
pub struct Counts {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    flushes: AtomicU64,
    discards: AtomicU64,
}

impl Counts {
    /// One more read.
    pub fn read(&self, bytes: u64) {
        self.reads.fetch_add(1, Relaxed);
        self.read_bytes.fetch_add(bytes, Relaxed);
    }

    /// One more write.
    pub fn wrote(&self, bytes: u64) {
        self.writes.fetch_add(1, Relaxed);
        self.written_bytes.fetch_add(bytes, Relaxed);
    }

    /// One more flush.
    pub fn flushed(&self) {
        self.flushes.fetch_add(1, Relaxed);
    }

    /// One more discard, or write of zeros.
    pub fn discarded(&self) {
        self.discards.fetch_add(1, Relaxed);
    }

    /// All of them now.
    pub fn now(&self) -> Counted {
        Counted {
            reads: self.reads.load(Relaxed),
            read_bytes: self.read_bytes.load(Relaxed),
            writes: self.writes.load(Relaxed),
            written_bytes: self.written_bytes.load(Relaxed),
            flushes: self.flushes.load(Relaxed),
            discards: self.discards.load(Relaxed),
        }
    }
}
