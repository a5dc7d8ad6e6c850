//! The desk: what writers of a journal share. It lies behind the pool in the image's memory, so that whoever maps
//! the pool can write the journal, also before there is a run-time memory.
//!
//! ```text
//! words, one page │ table of extents │ buffer of the batch in the making │ an anchor │ a cursor for each segment
//! ```
//!
//! Table and buffer belong to the holder of the lock. Volatile like the image; after a crash of the machine both
//! are made from the journal.

use seawall_media::Region;
use seawall_media::block::{ANCHOR_BYTES, EXTENT_BYTES};

use crate::shm::words;

/// View of the desk.
#[derive(Clone, Copy)]
pub struct Desk<'a> {
    region: &'a Region,
    at: usize,
}

words!(Desk {
    /// Process and thread that lead, 0 when nobody does.
    lock: u64 @ 0,
    /// Futex of those who need a capture with an even number: incremented whenever a leader is through.
    bell_even: u32 @ 8,
    /// 1: threads may sleep on that bell.
    sleepers_even: u32 @ 12,
    /// errno of the write that failed: nothing is hardened any more. 0: none.
    failed: u32 @ 16,
    /// Bytes of a block.
    block: u32 @ 20,
    /// Counts captures that began.
    begun: u64 @ 24,
    /// The newest capture of which everything is on the device.
    done: u64 @ 32,
    /// All records at or below this LSN are on the device.
    hardened: u64 @ 40,
    /// The highest number given to a batch.
    claimed: u64 @ 48,
    /// The newest batch on the device. Which of the two ends counts, its lowest bit says: one store commits both.
    last: u64 @ 56,
    /// Where the newest batch with an even number ends.
    end_even: u64 @ 64,
    /// Where the newest batch with an odd number ends.
    end_odd: u64 @ 72,
    /// Where the oldest batch begins that still counts: what is before it may be overwritten.
    tail: u64 @ 80,
    /// [`Anchor::sequence`](seawall_media::block::Anchor::sequence).
    anchor: u64 @ 88,
    /// Bytes of the journal.
    size: u64 @ 96,
    /// The pool's UUID, low half.
    uuid_low: u64 @ 104,
    /// The pool's UUID, high half.
    uuid_high: u64 @ 112,
    /// Futex of those who need a capture with an odd number.
    bell_odd: u32 @ 120,
    /// 1: threads may sleep on that bell.
    sleepers_odd: u32 @ 124,
    /// Device writes of batches.
    writes: u64 @ 128,
    /// Bytes of them, padding included.
    bytes: u64 @ 136,
    /// Bytes of the image in them.
    data: u64 @ 144,
    /// Syncs that waited for the device.
    waits: u64 @ 152,
    /// Syncs that led a write.
    leads: u64 @ 160,
    /// [`waits`](Self::waits) when the newest capture began.
    counted: u64 @ 168,
    /// How many waited for that capture.
    company: u64 @ 176,
    /// When the newest device write of a batch ended, in ticks.
    ended: u64 @ 184,
    /// What it took, in ticks.
    took: u64 @ 192,
    /// The copies of a mirrored journal that are written, a bit each; 0 if it is not mirrored.
    copies: u32 @ 200,
    /// [`Mirror::epoch`](seawall_media::block::Mirror::epoch).
    epoch: u32 @ 204,
    /// The bit of a copy that failed, until the other one has recorded that it is alone.
    suspect: u32 @ 208,
    /// errno of the copy that failed in this run; 0: none.
    lost: u32 @ 212,
    /// The tail in the newest anchor if its sequence is even.
    tail_even: u64 @ 216,
    /// The same if it is odd.
    tail_odd: u64 @ 224,
    /// [`Anchor::before`](seawall_media::block::Anchor::before) in the newest anchor if its sequence is even.
    before_even: u64 @ 232,
    /// The same if it is odd.
    before_odd: u64 @ 240,
    /// The bit of a copy that is being rebuilt: batches are written to it as well, and it does not count.
    joining: u32 @ 248,
    /// Counts how often a copy's device was replaced: who has descriptors of an older number writes neither copy.
    given: u32 @ 252,
    /// errno of the write by which the copy that was being rebuilt failed; 0: none did.
    refused: u32 @ 256,
    /// Bytes that cleaning wrote since the tail moved: what they are copies of counts already.
    cleaned: u64 @ 264,
    /// 1: captures begin at once, for now; 0: whoever could lead may wait for others first.
    at_once: u32 @ 272,
    /// Captures left of the stretch of which the pace is taken.
    stretch: u32 @ 276,
    /// Stretches left until the other way of beginning is tried; 0 while it is being tried.
    untried: u32 @ 280,
    /// How many stretches there were to be between the last trial and the next one.
    rest: u32 @ 284,
    /// When the stretch began, in ticks.
    stretch_at: u64 @ 288,
    /// [`waits`](Self::waits) when the stretch began.
    stretch_waits: u64 @ 296,
    /// Ticks for 1024 syncs in the last stretch that was no trial.
    pace: u64 @ 304,
});

impl<'a> Desk<'a> {
    /// Entries of the table.
    pub const EXTENTS: u32 = 1024;
    /// Bytes of the buffer: the longest batch.
    pub const BUFFER: usize = 1 << 20;
    const TABLE_AT: usize = 4096;
    const BUFFER_AT: usize = Self::TABLE_AT + Self::EXTENTS as usize * EXTENT_BYTES;
    const ANCHOR_AT: usize = Self::BUFFER_AT + Self::BUFFER;
    const CURSORS_AT: usize = Self::ANCHOR_AT + ANCHOR_BYTES;

    /// Bytes it occupies behind a pool of so many segments.
    pub const fn bytes_for(segments: u32) -> usize {
        (Self::CURSORS_AT + segments as usize * 16).next_multiple_of(4096)
    }

    /// The desk at `at` in the image's memory.
    pub fn new(region: &'a Region, at: usize) -> Self {
        Self { region, at }
    }

    /// Where the table lies in the memory, and how many entries it has.
    pub fn table(&self) -> (usize, u32) {
        (self.at + Self::TABLE_AT, Self::EXTENTS)
    }

    /// Where the buffer lies in the memory, and its bytes.
    pub fn buffer(&self) -> (usize, usize) {
        (self.at + Self::BUFFER_AT, Self::BUFFER)
    }

    /// Bytes of the image in front of it.
    pub fn image_bytes(&self) -> u64 {
        self.at as u64
    }

    /// Where in the memory an anchor is made. It belongs to the holder of the lock.
    pub fn anchor_page(&self) -> usize {
        self.at + Self::ANCHOR_AT
    }

    /// How far segment `i` is on the device, in the form of [`Segment::written`](crate::shm::Segment::written).
    pub fn cursor(&self, i: u32) -> &'a core::sync::atomic::AtomicU64 {
        self.region.u64(self.at + Self::CURSORS_AT + i as usize * 16)
    }

    /// Where that cursor goes when the capture under way is on the device; 0: nowhere. The leader's.
    pub fn noted(&self, i: u32) -> &'a core::sync::atomic::AtomicU64 {
        self.region.u64(self.at + Self::CURSORS_AT + i as usize * 16 + 8)
    }

    /// The bell of those who need this capture, and whether anybody may sleep on it.
    pub fn bell(
        &self,
        capture: u64,
    ) -> (&'a core::sync::atomic::AtomicU32, &'a core::sync::atomic::AtomicU32) {
        if capture.is_multiple_of(2) {
            (self.bell_even(), self.sleepers_even())
        } else {
            (self.bell_odd(), self.sleepers_odd())
        }
    }

    /// Tail and predecessor in the anchor with this sequence, if that is the newest.
    pub fn start(
        &self,
        sequence: u64,
    ) -> (&'a core::sync::atomic::AtomicU64, &'a core::sync::atomic::AtomicU64) {
        if sequence.is_multiple_of(2) {
            (self.tail_even(), self.before_even())
        } else {
            (self.tail_odd(), self.before_odd())
        }
    }

    /// Where the newest batch ends if `number` is its number.
    pub fn end(&self, number: u64) -> &'a core::sync::atomic::AtomicU64 {
        if number.is_multiple_of(2) { self.end_even() } else { self.end_odd() }
    }
}
