//! The desk: what writers of a journal share. It lies behind the pool in the image's memory, so that whoever maps
//! the pool can write the journal, also before there is a run-time memory.
//!
//! ```text
//! words, seats: one page │ of each seat: table of extents │ buffer of the batch in the making │ … │ an anchor │
//! of each keeper: a tally │ a cursor for each segment │ of each seat: notes for each segment │ …
//! ```
//!
//! Whoever leads sits on a seat, and what is on it is that thread's alone, also when another one has taken its place: it
//! may be stopped anywhere and go on at any time. The anchor belongs to whoever leads and cannot be replaced. Volatile
//! like the image; after a crash of the machine both are made from the journal.

mod lead;
mod link;

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

use seawall_media::Region;
use seawall_media::block::{ANCHOR_BYTES, EXTENT_BYTES};
use seawall_stats::Tally;

use crate::keeper::{Epoch, KEEPERS_MAX, Position};
use crate::words::words;
pub use lead::{LastWord, LeadWord, Seat};
pub use link::{Link, link_flags};

const _: () = assert!(Desk::LINKS_AT + KEEPERS_MAX * Desk::LINK_BYTES <= Desk::SEATS_AT);

/// View of the desk.
#[derive(Clone, Copy)]
pub struct Desk<'a> {
    region: &'a Region,
    at: usize,
}

words!(Desk {
    /// Which lead it is, a [`LeadWord`]; 0 when nobody leads.
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
    /// The newest batch on the device, a [`LastWord`]: one compare-and-swap commits its number and where it ends.
    last: u64 @ 56,
    /// Counts leads.
    terms: u64 @ 64,
    /// Leaders that were replaced since the last batch was committed.
    replaced: u32 @ 72,
    /// Leaders that were replaced, of all times.
    replaced_ever: u32 @ 76,
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
    /// Counts how often a copy's device was replaced: a process with descriptors of an older number writes neither copy.
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
    /// Of a log that other hosts keep: its writer's turn, see [`Desk::turn`].
    turn_counter: u64 @ 312,
    /// The same: the writer.
    turn_writer: u64 @ 320,
    /// The same: the turn of the newest batch that it began with.
    base_counter: u64 @ 328,
    /// The same: that turn's writer.
    base_writer: u64 @ 336,
    /// The same: that batch.
    base_number: u64 @ 344,
    /// The same: the number that the log had when the turn began.
    turn_begun: u64 @ 352,
    /// The same: the newest capture that a thread waits for that cannot lead.
    wanted: u64 @ 360,
    /// Futex of whoever leads for them: 1 while it sleeps.
    dozes: u32 @ 368,
    /// The same: how many keepers must confirm a batch that any process sends; 0: only the daemon sends now. Changed only
    /// by whoever leads and cannot be replaced.
    acks: u32 @ 372,
    /// Nanoseconds of 2³² ticks of the time-stamp counter; 0: not known yet.
    clock: u64 @ 376,
    /// Of a log that other hosts keep: [`alone`], if too few of them are reached and this host may go on without.
    alone: u32 @ 384,
    /// The same: for how many more batches nobody listens before it sleeps.
    unheard: u32 @ 388,
    /// The same: how many those were to be when it was last found out whether listening helps.
    pause: u32 @ 392,
    /// The last segments, so many, have no memory yet: they are free, hold zeros, and nobody touches them. It only shrinks.
    unbacked: u32 @ 396,
    /// 1: an anchor says that the log was closed, which goes before the next batch is written.
    closed: u32 @ 400,
});

/// What a host does without its keepers.
pub mod alone {
    /// Nothing: the log has them.
    pub const NO: u32 = 0;
    /// It makes durable on its own disk what the log holds. Nothing is acknowledged meanwhile.
    pub const GOES: u32 = 1;
    /// Syncs are its own disk's, and batches count without anybody's word.
    pub const IS: u32 = 2;
}

impl<'a> Desk<'a> {
    /// Seats: one for the leader, one whose batch was the last, and the others for those who were replaced and are
    /// stopped.
    pub const SEATS: u32 = 8;
    /// Entries of a table.
    pub const EXTENTS: u32 = 1024;
    /// Bytes of a buffer: the longest batch.
    pub const BUFFER: usize = 1 << 20;
    const LINKS_AT: usize = 1024;
    const LINK_BYTES: usize = 64;
    const SEATS_AT: usize = 2048;
    const SEAT_BYTES: usize = 64;
    const TABLES_AT: usize = 4096;
    const TABLE_BYTES: usize = Self::EXTENTS as usize * EXTENT_BYTES;
    const BUFFERS_AT: usize = Self::TABLES_AT + Self::SEATS as usize * Self::TABLE_BYTES;
    const ANCHOR_AT: usize = Self::BUFFERS_AT + Self::SEATS as usize * Self::BUFFER;
    const TALLIES_AT: usize = Self::ANCHOR_AT + ANCHOR_BYTES;
    const CURSORS_AT: usize = Self::TALLIES_AT + KEEPERS_MAX * Tally::BYTES;

    /// Bytes it occupies behind a pool of so many segments.
    pub const fn bytes_for(segments: u32) -> usize {
        let words = 1 + 2 * Self::SEATS as usize;
        (Self::CURSORS_AT + segments as usize * 8 * words).next_multiple_of(4096)
    }

    /// The desk at `at` in the image's memory.
    pub fn new(region: &'a Region, at: usize) -> Self {
        Self { region, at }
    }

    /// The seat with this number, below [`SEATS`](Self::SEATS). A word that says otherwise is damaged, and names some seat.
    pub fn seat(&self, seat: u32) -> Seat<'a> {
        let seat = (seat % Self::SEATS) as usize;
        Seat::new(self.region, self.at + Self::SEATS_AT + seat * Self::SEAT_BYTES)
    }

    /// All seats.
    pub fn seats(&self) -> impl Iterator<Item = Seat<'a>> + use<'a> {
        let desk = *self;
        (0..Self::SEATS).map(move |seat| desk.seat(seat))
    }

    /// What is known of the keeper with this number, below [`KEEPERS_MAX`].
    pub fn link(&self, keeper: usize) -> Link<'a> {
        Link::new(self.region, self.at + Self::LINKS_AT + keeper % KEEPERS_MAX * Self::LINK_BYTES)
    }

    /// What is known of all keepers that there may be.
    pub fn links(&self) -> impl Iterator<Item = Link<'a>> + Clone + use<'a> {
        let desk = *self;
        (0..KEEPERS_MAX).map(move |keeper| desk.link(keeper))
    }

    /// Where a seat's table lies in the memory, and how many entries it has.
    pub fn table(&self, seat: u32) -> (usize, u32) {
        (self.at + Self::TABLES_AT + seat as usize * Self::TABLE_BYTES, Self::EXTENTS)
    }

    /// Where a seat's buffer lies in the memory, and its bytes.
    pub fn buffer(&self, seat: u32) -> (usize, usize) {
        (self.at + Self::BUFFERS_AT + seat as usize * Self::BUFFER, Self::BUFFER)
    }

    /// Bytes of the image in front of it.
    pub fn image_bytes(&self) -> u64 {
        self.at as u64
    }

    /// Where in the memory an anchor is made. It belongs to the holder of the lock.
    pub fn anchor_page(&self) -> usize {
        self.at + Self::ANCHOR_AT
    }

    /// What is counted of the keeper with this number in the log's roster.
    pub fn tally(&self, keeper: usize) -> Tally<'a> {
        Tally::new(self.region, self.at + Self::TALLIES_AT + keeper % KEEPERS_MAX * Tally::BYTES)
    }

    /// How far segment `i` is on the device, in the form of [`Segment::written`](crate::shm::Segment::written).
    pub fn cursor(&self, i: u32) -> &'a AtomicU64 {
        self.region.u64(self.at + Self::CURSORS_AT + i as usize * 8)
    }

    /// A seat's note: where that cursor was, and where it goes when the capture under way is on the device; 0: nowhere.
    /// `segments` is how many there are.
    pub fn note(&self, seat: u32, segments: u32, i: u32) -> (&'a AtomicU64, &'a AtomicU64) {
        let notes = self.at + Self::CURSORS_AT + segments as usize * 8;
        let at = notes + (seat as usize * segments as usize + i as usize) * 16;
        (self.region.u64(at), self.region.u64(at + 8))
    }

    /// The bell of those who need this capture, and whether anybody may sleep on it.
    pub fn bell(&self, capture: u64) -> (&'a AtomicU32, &'a AtomicU32) {
        if capture.is_multiple_of(2) {
            (self.bell_even(), self.sleepers_even())
        } else {
            (self.bell_odd(), self.sleepers_odd())
        }
    }

    /// Tail and predecessor in the anchor with this sequence, if that is the newest.
    pub fn start(&self, sequence: u64) -> (&'a AtomicU64, &'a AtomicU64) {
        if sequence.is_multiple_of(2) {
            (self.tail_even(), self.before_even())
        } else {
            (self.tail_odd(), self.before_odd())
        }
    }

    /// The newest batch on the device, and where it ends.
    pub fn newest(&self) -> (LastWord, u64) {
        loop {
            let last = LastWord(self.last().load(SeqCst));
            let end = self.seat(last.seat()).end().load(SeqCst);
            // Another batch may have followed, and its predecessor's seat been taken.
            if LastWord(self.last().load(SeqCst)).number() == last.number() {
                return (last, end);
            }
        }
    }

    /// Of a log that other hosts keep: its writer's turn, the copy that it began with, and the number that the log had then.
    pub fn turn(&self) -> (Epoch, Position, u64) {
        let word = |word: &AtomicU64| word.load(SeqCst);
        let epoch = Epoch { counter: word(self.turn_counter()), writer: word(self.turn_writer()) };
        let base = Epoch { counter: word(self.base_counter()), writer: word(self.base_writer()) };
        (epoch, Position { epoch: base, number: word(self.base_number()) }, word(self.turn_begun()))
    }

    /// Says so, before anything of that turn is written.
    pub fn set_turn(&self, epoch: Epoch, base: Position, begun: u64) {
        self.turn_counter().store(epoch.counter, SeqCst);
        self.turn_writer().store(epoch.writer, SeqCst);
        self.base_counter().store(base.epoch.counter, SeqCst);
        self.base_writer().store(base.epoch.writer, SeqCst);
        self.base_number().store(base.number, SeqCst);
        self.turn_begun().store(begun, SeqCst);
    }

    /// Who leads, and its process and thread.
    pub fn leader(&self) -> Option<(LeadWord, u64)> {
        loop {
            let word = self.lock().load(SeqCst);
            if word == 0 {
                return None;
            }
            let holder = self.seat(LeadWord(word).seat()).holder().load(SeqCst);
            if self.lock().load(SeqCst) == word {
                return Some((LeadWord(word), holder));
            }
        }
    }
}
