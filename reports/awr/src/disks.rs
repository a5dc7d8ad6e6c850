//! The disks of virtual machines that a log has, as whoever asks them found them.

use std::path::PathBuf;

/// What a disk's guest asked for: reads and their bytes, writes and their bytes, flushes, discards.
pub type Counts = [u64; 6];

/// One disk.
#[derive(Clone, Debug)]
pub struct Disk {
    /// Its image.
    pub image: PathBuf,
    /// Bytes of it.
    pub bytes: u64,
    /// Queues that a guest uses; 0: there is none.
    pub queues: usize,
    /// What was asked for since it is served.
    pub counts: Counts,
}

/// Finds those of these processes that serve a disk.
pub type Find = fn(&[u32]) -> Vec<Disk>;
