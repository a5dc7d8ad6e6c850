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
//! * One leader's device write is under way at a time, and those of leaders that were replaced while they stood still. A
//!   batch counts when [`Desk::last`] names it: a compare-and-swap after the device's success, which fails for whoever was
//!   replaced. A leader that dies before leaves nothing: its successor begins with another number.
//! * An error of the device is final: nothing is retried into success.
//!
//! Who leads, and who is woken: `lock`. What a leader has to itself: `seat`. Two devices instead of one: `mirror`. Whether to wait for others first: `company`, and what
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
mod seat;
mod way;

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use seawall_media::block::{Draft, Ring};
use seawall_media::{LINE, Region};
use seawall_wire::desk::{Desk, LastWord};

use crate::Errno;
use crate::format::Layout;
use crate::store::Range;

#[cfg(feature = "std")]
pub use seat::{bury_dead, replaced};
#[cfg(feature = "std")]
pub use way::Pair;
pub use way::{Lender, Way};

use lock::REPLACED;
use way::Writer;

/// What an image that was given up has for an error: nothing will ever be written from it.
pub const GIVEN_UP: u32 = Errno::STALE.raw_os_error() as u32;

/// One pool's journal, as one process sees it.
pub struct Journal {
    way: Way,
    desk_at: usize,
    /// The client that this process is, plus one; 0: none yet.
    client: AtomicU32,
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
    ring(desk).used(desk.tail().load(SeqCst), desk.newest().1)
}

impl Journal {
    /// The journal that is reached in this way, with its desk at `desk_at` in the image's memory.
    pub fn new(way: Way, desk_at: usize) -> Self {
        Self { way, desk_at, client: AtomicU32::new(0) }
    }

    /// This process is that client from now on: whoever finds it dead frees what it holds.
    pub fn sits_for(&self, client: u32) {
        self.client.store(client + 1, Relaxed);
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
        let lead = self.lead_pinned(image)?;
        let result = change();
        lead.unpin();
        match self.put(image, &lead, ranges) {
            Err(REPLACED) => self.leading(image, |lead| self.put(image, lead, ranges)),
            done => done,
        }?;
        Ok(result)
    }

    /// Writes ranges of tables as they are now.
    fn put(&self, image: &Region, lead: &Writer<'_>, ranges: &[Range]) -> Result<(), Errno> {
        let mut draft = self.draft(image, lead);
        for (at, len) in ranges {
            let (from, to) = (at / LINE * LINE, (at + len).next_multiple_of(LINE));
            self.add(image, lead, &mut draft, (from, to - from), Room::Tables)?;
        }
        self.write(image, lead, draft, Room::Tables)
    }

    /// A file's watermark, raised by somebody who can reach the device.
    ///
    /// # Errors
    /// EIO if nobody does it.
    #[cold]
    pub fn retire(&self, slot: u32, generation: u32, lsn: u64) -> Result<(), Errno> {
        self.way.lender().map_or(Err(Errno::IO), |lender| lender.retire(slot, generation, lsn))
    }

    /// Nothing is ever written from this image again, whoever has it mapped. Waits for those who were replaced, and may
    /// still write.
    #[cfg(feature = "std")]
    pub fn give_up(&self, image: &Region) {
        let desk = self.desk(image);
        // On a device that failed nobody writes anyway.
        let Ok(lead) = self.lead_pinned(image) else { return };
        while seat::claimed_by_others(desk, lead.seat()).next().is_some() {
            seat::bury_dead(desk);
            std::thread::sleep(core::time::Duration::from_millis(1));
        }
        desk.failed().store(GIVEN_UP, SeqCst);
    }

    fn draft<'a>(&self, image: &'a Region, lead: &Writer<'_>) -> Draft<'a> {
        let desk = self.desk(image);
        Draft::begin(image, desk.buffer(lead.seat()), desk.table(lead.seat()))
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
                let full = core::mem::replace(draft, self.draft(image, lead));
                self.write(image, lead, full, room)?;
                continue;
            }
            draft.take(at, piece);
            at += piece;
        }
        Ok(())
    }

    /// Writes a batch and commits it. An empty one is no write.
    ///
    /// # Errors
    /// [`REPLACED`] if somebody else leads by now: then it does not count.
    fn write(&self, image: &Region, lead: &Writer<'_>, draft: Draft<'_>, room: Room) -> Result<(), Errno> {
        if draft.is_empty() {
            return Ok(());
        }
        let desk = self.desk(image);
        let block = desk.block().load(Relaxed);
        let (last, end) = desk.newest();
        let (data, size) = (draft.data() as u64, draft.size(block) as u64);
        let position = place(desk, lead.seat(), end, size, room).ok_or(Errno::NOSPC)?;
        // Before the look whether it still leads: whoever replaces it draws a higher one.
        let number = desk.claimed().fetch_add(1, SeqCst) + 1;
        if !lead.claim(position, size) {
            return Err(REPLACED);
        }
        draft.seal(number, last.number(), position, desk.uuid_low().load(Relaxed), block);
        let (buffer, _) = desk.buffer(lead.seat());
        let written = lead.write(image, buffer, size as usize, position);
        lead.is_through();
        company::wrote(desk, written?);
        desk.seat(lead.seat()).end().store(position + size, SeqCst);
        let next = LastWord::new(number, lead.seat());
        desk.last().compare_exchange(last.0, next.0, SeqCst, Relaxed).map_err(|_| REPLACED)?;
        desk.replaced().store(0, Relaxed);
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

/// Where a batch of so many bytes goes behind this end, beside everything that others may still write.
fn place(desk: Desk<'_>, seat: u32, end: u64, size: u64, room: Room) -> Option<u64> {
    let (mut avoided, mut count) = ([(0, 0); Desk::SEATS as usize], 0);
    for stretch in seat::claimed_by_others(desk, seat) {
        avoided[count] = stretch;
        count += 1;
    }
    let place = ring(desk).place(desk.tail().load(SeqCst), end, size, &avoided[..count]);
    place.filter(|_| room.takes(desk, size))
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use seawall_media::block::Device;

    /// Memory with a desk for one segment at its front.
    pub fn desk_memory() -> Region {
        let file = tempfile::tempfile_in("/dev/shm").expect("a file");
        let len = Desk::bytes_for(1) as u64;
        file.set_len(len).expect("room");
        Region::map(&file, len, false).expect("a mapping")
    }

    #[test]
    fn what_is_on_a_seat_is_nobody_elses() {
        let segments = 3;
        let file = tempfile::tempfile_in("/dev/shm").expect("a file");
        let len = Desk::bytes_for(segments) as u64;
        file.set_len(len).expect("room");
        let region = Region::map(&file, len, false).expect("a mapping");
        let desk = Desk::new(&region, 0);
        let mut ranges = Vec::new();
        for seat in 0..Desk::SEATS {
            ranges.push(desk.buffer(seat));
            ranges
                .push((desk.table(seat).0, desk.table(seat).1 as usize * seawall_media::block::EXTENT_BYTES));
            let (first, _) = desk.note(seat, segments, 0);
            let at = std::ptr::from_ref(first) as usize - region.base();
            ranges.push((at, segments as usize * 16));
        }
        ranges.push((desk.anchor_page(), 4096));
        let cursors = std::ptr::from_ref(desk.cursor(0)) as usize - region.base();
        ranges.push((cursors, segments as usize * 8));
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{ranges:?}");
        assert!(ranges.last().is_some_and(|(at, bytes)| at + bytes <= region.len()));
    }

    /// A journal whose desk lies there, on a device that takes everything.
    pub fn journal() -> Journal {
        let device = std::fs::File::options().write(true).open("/dev/null").expect("a device");
        Journal::new(Way::Own(Device::new(device.into())), 0)
    }
}
