//! Segments' states: free, open in a lane, full. Rebuilt from the medium after a crash of the machine.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use seawall_media::Region;

use crate::words::words;

/// What a segment is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SegmentState {
    /// May be taken.
    Free = 0,
    /// A lane appends to it, or is about to.
    Open = 1,
    /// Closed; free again when all its records are retired.
    Full = 2,
    /// As full; the daemon is copying it out of the pool, and nobody else may give it free.
    Spilling = 3,
}

/// View of a segment.
#[derive(Clone, Copy)]
pub struct Segment<'a> {
    region: &'a Region,
    at: usize,
}

impl SegmentState {
    /// The lane of a state word that says open.
    pub const fn lane_of(word: u32) -> Option<u32> {
        if word & 0xff == Self::Open as u32 { Some(word >> 8) } else { None }
    }
}

words!(Segment {
    /// [`SegmentState`] as a number; above it, for an open segment, its lane. In one word, so that whoever is
    /// killed while taking a segment leaves both or neither.
    state: u32 @ 0,
    /// The highest LSN in it.
    last_lsn: u64 @ 8,
    /// How far its present use is filled with whole records: the use's number, its low half, above the offset. In
    /// one word, so that neither is ever taken for the other use's. Read only by whoever writes a journal.
    written: u64 @ 16,
});

impl<'a> Segment<'a> {
    /// Bytes it occupies.
    pub const BYTES: usize = 32;

    pub(crate) fn new(region: &'a Region, at: usize) -> Self {
        Self { region, at }
    }

    /// Takes a free segment for a lane. False if somebody else was quicker.
    pub fn claim(&self, lane: u32) -> bool {
        let (free, open) = (SegmentState::Free as u32, SegmentState::Open as u32 | lane << 8);
        self.state().compare_exchange(free, open, Acquire, Relaxed).is_ok()
    }
}
