//! The journal: how an image in memory becomes durable on a block device, for many processes at once.
//!
//! ```text
//!  whoever needs durability ──▶ [lock] ── leads ──▶ capture ──▶ one device write ──▶ commit ──▶ wake
//!                                  │ taken
//!                                  └──▶ sleeps; the leader's *next* capture covers it, and one who slept leads that
//! ```
//!
//! Inputs: ranges of tables that were changed ([`Journal::change`]); everybody's records ([`Journal::harden`]).
//! Output: batches on the device. Invariants:
//!
//! * After a crash the image read from the journal is one that persistent memory could have left: a batch holds
//!   no store without what had been fenced before it. For records see `capture`; tables are written by
//!   whoever changes them, with the lock held.
//! * One device write is under way at a time. A batch counts when [`Desk::last`] names it, a single store after the
//!   device's success. A leader that dies before leaves nothing: its successor begins with another number.
//! * An error of the device is final: nothing is retried into success.
//!
//! Who leads, and who is woken: `lock`. Two devices instead of one: `mirror`. Whether to wait for others first: `company`, and what
//! that brings here: `pace`.
//!
//! One write in flight is what makes it possible to tell a drive that lies (`seawall_media::block`). More would be of use
//! where a write takes much longer than what its sharers do in between; but there all of them meet in the next batch.
//!
//! Not handled here: what a sync does when the journal is full (`engine`).

mod capture;
#[cfg(feature = "std")]
pub mod clean;
mod company;
mod lock;
mod mirror;
#[cfg(feature = "std")]
pub mod open;
mod pace;
#[cfg(feature = "std")]
pub mod rebuild;
mod way;

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use seawall_media::block::{Draft, Ring};
use seawall_media::{LINE, Region};
use seawall_wire::desk::Desk;

use crate::Errno;
use crate::format::Layout;
use crate::store::Range;

#[cfg(feature = "std")]
pub use lock::bury_leader;
#[cfg(feature = "std")]
pub use way::Pair;
pub use way::{Lender, Way};

use way::Writer;

/// What an image that was given up has for an error: nothing will ever be written from it.
pub const GIVEN_UP: u32 = Errno::STALE.raw_os_error() as u32;

/// One pool's journal, as one process sees it.
pub struct Journal {
    way: Way,
    desk_at: usize,
}

/// Who asks for room. Tables can still change when records have none, also while cleaning is under way or was given up
/// by a daemon that died; and there is always room to make room, if only once nothing is live: what is live is never
/// more than the image, a third of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// Records: half of the journal.
    Records,
    /// Tables: an eighth more.
    Tables,
    /// Cleaning: all of it, except for a last time what only that may have.
    #[cfg(feature = "std")]
    Cleaning,
}

impl Room {
    /// What it may have of so many bytes, of which those that cleaning wrote are not counted.
    const fn share(self, bytes: u64) -> u64 {
        match self {
            Self::Records => bytes / 2,
            Self::Tables => bytes / 8 * 5,
            #[cfg(feature = "std")]
            Self::Cleaning => bytes,
        }
    }

    /// What it leaves free, all counted, to those who matter more.
    const fn spare(self, bytes: u64) -> u64 {
        match self {
            Self::Records => bytes / 8,
            Self::Tables => bytes / 16,
            #[cfg(feature = "std")]
            Self::Cleaning => 0,
        }
    }

    /// True if so many bytes more fit.
    fn takes(self, desk: Desk<'_>, size: u64) -> bool {
        let (bytes, used) = (ring(desk).bytes(), used(desk));
        // Less than nothing: a daemon died between a move of the tail and forgetting what it cleaned for that.
        let counted = match self {
            #[cfg(feature = "std")]
            Self::Cleaning => used,
            _ => used.saturating_sub(desk.cleaned().load(Relaxed)),
        };
        counted + size <= self.share(bytes) && used + size + self.spare(bytes) <= bytes
    }
}

fn ring(desk: Desk<'_>) -> Ring {
    Ring { size: desk.size().load(Relaxed) }
}

fn used(desk: Desk<'_>) -> u64 {
    ring(desk).used(desk.tail().load(Acquire), desk.end(desk.last().load(Acquire)).load(Acquire))
}

impl Journal {
    /// The journal that is reached in this way, with its desk at `desk_at` in the image's memory.
    pub fn new(way: Way, desk_at: usize) -> Self {
        Self { way, desk_at }
    }

    /// What its writers share. `image` is the memory that the desk lies in.
    pub fn desk<'a>(&self, image: &'a Region) -> Desk<'a> {
        Desk::new(image, self.desk_at)
    }

    /// True if its desk lies in this image, which is of this layout.
    pub fn fits(&self, image: &Region, layout: Layout) -> bool {
        self.desk_at.checked_add(Desk::bytes_for(layout.segments)).is_some_and(|end| end <= image.len())
    }

    /// True while less of it is in use than cleaning leaves behind at worst: files that left may return.
    pub fn is_roomy(&self, image: &Region) -> bool {
        let desk = self.desk(image);
        used(desk) < ring(desk).bytes() / 8 * 3
    }

    /// Where its desk lies in the image's memory: behind the pool.
    pub fn desk_at(&self) -> usize {
        self.desk_at
    }

    /// How it is reached.
    pub fn way(&self) -> &Way {
        &self.way
    }

    /// Makes a change and writes these ranges of the image. See [`Store::change`](crate::store::Store::change).
    ///
    /// # Errors
    /// As there; ENOSPC if the journal is full to the last block; EBADF without a way to the device.
    pub fn change<R>(
        &self,
        image: &Region,
        ranges: &[Range],
        change: impl FnOnce() -> R,
    ) -> Result<R, Errno> {
        let lead = self.lead(image)?;
        let result = change();
        let mut draft = self.draft(image);
        for (at, len) in ranges {
            let (from, to) = (at / LINE * LINE, (at + len).next_multiple_of(LINE));
            self.add(image, &lead, &mut draft, (from, to - from), Room::Tables)?;
        }
        self.write(image, &lead, draft, Room::Tables)?;
        Ok(result)
    }

    /// A file's watermark, raised by somebody who can reach the device.
    ///
    /// # Errors
    /// EIO if nobody does it.
    #[cold]
    pub fn retire(&self, slot: u32, generation: u32, lsn: u64) -> Result<(), Errno> {
        self.way.lender().map_or(Err(Errno::IO), |lender| lender.retire(slot, generation, lsn))
    }

    /// Nothing is ever written from this image again, whoever has it mapped.
    #[cfg(feature = "std")]
    pub fn give_up(&self, image: &Region) {
        // Nobody is in the middle of a write. On a device that failed nobody writes anyway.
        if let Ok(_lead) = self.lead(image) {
            self.desk(image).failed().store(GIVEN_UP, SeqCst);
        }
    }

    fn draft<'a>(&self, image: &'a Region) -> Draft<'a> {
        let desk = self.desk(image);
        Draft::begin(image, desk.buffer(), desk.table())
    }

    /// Takes a range into the batch; writes the batch and begins another one whenever it is full.
    fn add<'a>(
        &self,
        image: &'a Region,
        lead: &Writer<'_>,
        draft: &mut Draft<'a>,
        range: Range,
        room: Room,
    ) -> Result<(), Errno> {
        let (mut at, end) = (range.0, range.0 + range.1);
        while at < end {
            let piece = draft.room().min(end - at);
            if piece == 0 {
                let full = core::mem::replace(draft, self.draft(image));
                self.write(image, lead, full, room)?;
                continue;
            }
            draft.take(at, piece);
            at += piece;
        }
        Ok(())
    }

    /// Writes a batch and commits it. An empty one is no write.
    fn write(&self, image: &Region, lead: &Writer<'_>, draft: Draft<'_>, room: Room) -> Result<(), Errno> {
        if draft.is_empty() {
            return Ok(());
        }
        let desk = self.desk(image);
        let block = desk.block().load(Relaxed);
        let last = desk.last().load(Acquire);
        let (data, size) = (draft.data() as u64, draft.size(block) as u64);
        let position = place(desk, last, size, room).ok_or(Errno::NOSPC)?;
        // The next number whose lowest bit differs: the end of the last batch stays until this one counts.
        let claimed = desk.claimed().load(Relaxed);
        let number = claimed + 1 + (claimed + 1 + last + 1) % 2;
        desk.claimed().store(number, SeqCst);
        draft.seal(number, last, position, desk.uuid_low().load(Relaxed), block);
        let (buffer, _) = desk.buffer();
        let during = lead.write(image, buffer, size as usize, position)?;
        company::wrote(desk, during);
        desk.end(number).store(position + size, Release);
        desk.last().store(number, SeqCst);
        #[cfg(feature = "std")]
        if room == Room::Cleaning {
            desk.cleaned().fetch_add(size, Relaxed);
        }
        desk.writes().fetch_add(1, Relaxed);
        desk.bytes().fetch_add(size, Relaxed);
        desk.data().fetch_add(data, Relaxed);
        Ok(())
    }
}

fn place(desk: Desk<'_>, last: u64, size: u64, room: Room) -> Option<u64> {
    let (tail, end) = (desk.tail().load(Relaxed), desk.end(last).load(Acquire));
    ring(desk).place(tail, end, size).filter(|_| room.takes(desk, size))
}

/// Memory with a desk for one segment at its front, for tests.
#[cfg(all(test, feature = "std"))]
fn desk_memory() -> Region {
    let file = tempfile::tempfile_in("/dev/shm").expect("a file");
    let len = Desk::bytes_for(1) as u64;
    file.set_len(len).expect("room");
    Region::map(&file, len, false).expect("a mapping")
}
