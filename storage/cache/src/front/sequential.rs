//! Streams of adjacent reads: what is read through once, as a scan of a whole table is. Told by where the reads of a
//! descriptor begin and end, in one word for each.
//!
//! A descriptor that threads share shows their reads in turn: a scan among others is not recognized, and then the cache's
//! own choice has to do. A word that is used again for another descriptor begins anew with the first read that is elsewhere.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of adjacent reads, one behind the other, from which on they are a stream.
pub const STREAM: u64 = 4 << 20;

/// Where a descriptor's reads are.
///
/// ```text
///  63        32 31          0
/// |  next block |  run, blocks |
/// ```
#[derive(Default)]
pub struct Stream(AtomicU64);

impl Stream {
    /// No read yet.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Notes a read of so many blocks from `first` on; true if it belongs to a stream. By a plain store: threads that read
    /// at once cost each other a beginning.
    #[inline]
    pub fn note(&self, first: u32, blocks: u32, block_bytes: u64) -> bool {
        let before = self.0.load(Relaxed);
        let is_next = (before >> 32) as u32 == first;
        let run = if is_next { (before as u32).saturating_add(blocks) } else { blocks };
        self.0.store(u64::from(first.wrapping_add(blocks)) << 32 | u64::from(run), Relaxed);
        u64::from(run) * block_bytes > STREAM
    }

    /// True if the read that was noted last belongs to a stream.
    pub fn is_one(&self, block_bytes: u64) -> bool {
        u64::from(self.0.load(Relaxed) as u32) * block_bytes > STREAM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_reads_become_a_stream_and_one_elsewhere_ends_it() {
        let stream = Stream::new();
        let blocks = (STREAM / 8192) as u32;
        assert!((0..blocks).all(|first| !stream.note(first, 1, 8192)));
        assert!(stream.note(blocks, 1, 8192) && stream.is_one(8192));
        assert!(!stream.note(7, 1, 8192));
        assert!(!stream.note(8, 1, 8192));
    }
}
