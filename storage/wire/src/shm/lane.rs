//! A lane: one thread's stretch of the log for the length of one write.

use seawall_media::Region;

use crate::words::words;

/// View of a lane.
#[derive(Clone, Copy)]
pub struct Lane<'a> {
    region: &'a Region,
    at: usize,
}

words!(Lane {
    /// The holder of the lane ([`Owner`](super::Client) word), 0 when it is free.
    owner: u64 @ 0,
    /// A lower bound of the LSN being written, 0 when nothing is in flight.
    inflight: u64 @ 8,
    /// The open segment plus one, 0 for none.
    segment: u32 @ 16,
    /// File slot of the write in flight.
    slot: u32 @ 20,
    /// Offset in the open segment where the next record goes.
    tail: u64 @ 24,
    /// Sequence number of the open segment, as in its header on the medium.
    seq: u64 @ 32,
    /// The persisted record whose publish has not ended: segment << 32 | offset / 64; 0 for none.
    record: u64 @ 40,
    /// The LSN of the write in flight, 0 as long as it has drawn none.
    lsn: u64 @ 48,
});

impl<'a> Lane<'a> {
    /// Bytes it occupies: two lines, so that neighbours' prefetches do not meet.
    pub const BYTES: usize = 128;

    pub(crate) fn new(region: &'a Region, at: usize) -> Self {
        Self { region, at }
    }
}
