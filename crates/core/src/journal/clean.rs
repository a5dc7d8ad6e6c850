//! Cleaning: the journal's tail moves, so that its space can be used again.
//!
//! Everything that is live is written once more behind the end: what is on the device of segments that are not
//! free, and the tables. Then nothing before the place where that began is needed, and the anchor says so. What is
//! live is never more than the image, a third of the journal, and more than that is kept free for it; after a round
//! of the destager it is next to nothing.
//!
//! Others lead in between: a line that they write again later is later in the journal as well.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use seawall_media::block::{RING_AT, Ring};
use seawall_media::{LINE, Region};
use seawall_wire::shm::SegmentState;

use super::{Journal, Room, mirror};
use crate::Errno;
use crate::append::Log;
use crate::format::Layout;
use crate::store::Range;

/// Used share of the ring from which on cleaning is worth its writes: a quarter.
const WORTH: u64 = 4;
/// Tables are looked through in pieces of this size; those of zeros are not written.
const PIECE: usize = 512;

/// A place in the journal.
#[derive(Clone, Copy)]
struct Start {
    before: u64,
    at: u64,
}

impl Journal {
    /// Cleans if that is worth it.
    ///
    /// # Errors
    /// EIO once the device failed; ENOSPC if there is no room to make room.
    pub fn clean_if_due(&self, log: &Log) -> Result<bool, Errno> {
        let desk = self.desk(&log.pool);
        let ring = Ring { size: desk.size().load(Relaxed) };
        let used = ring.used(desk.tail().load(Acquire), desk.end(desk.last().load(Acquire)).load(Acquire));
        let due = used > ring.bytes() / WORTH;
        if due {
            self.clean(log)?;
        }
        Ok(due)
    }

    /// Cleans.
    ///
    /// # Errors
    /// As for [`clean_if_due`](Self::clean_if_due).
    pub fn clean(&self, log: &Log) -> Result<(), Errno> {
        let start = self.start(&log.pool)?;
        self.tables(&log.pool, log.layout)?;
        for index in 0..log.layout.segments {
            self.segment(log, index)?;
        }
        self.move_tail(&log.pool, start)
    }

    /// Changes tables so that nothing is live any more, and begins a fresh lap with them. Until the tail has moved
    /// recovery finds what it found before, or that there is less to do.
    ///
    /// # Errors
    /// As for [`clean_if_due`](Self::clean_if_due).
    pub fn close(&self, image: &Region, layout: Layout, change: impl FnOnce()) -> Result<(), Errno> {
        let start = self.start(image)?;
        change();
        self.tables(image, layout)?;
        self.move_tail(image, start)
    }

    /// Where the next batch will begin, and which one is before it.
    fn start(&self, image: &Region) -> Result<Start, Errno> {
        let desk = self.desk(image);
        let _lead = self.lead(image)?;
        let before = desk.last().load(Acquire);
        Ok(Start { before, at: desk.end(before).load(Acquire) })
    }

    fn tables(&self, image: &Region, layout: Layout) -> Result<(), Errno> {
        let lead = self.lead(image)?;
        let mut draft = self.draft(image);
        let mut bytes = [0; PIECE];
        for at in (0..layout.segments_at()).step_by(PIECE) {
            image.read(at, &mut bytes);
            if bytes != [0; PIECE] {
                self.add(image, &lead, &mut draft, (at, PIECE), Room::Cleaning)?;
            }
        }
        self.write(image, &lead, draft, Room::Cleaning)
    }

    /// What of a segment is on the device already; the rest is the next capture's.
    fn segment(&self, log: &Log, index: u32) -> Result<(), Errno> {
        let image = &*log.pool;
        let lead = self.lead(image)?;
        let Some(range) = self.on_device(log, index) else { return Ok(()) };
        let mut draft = self.draft(image);
        self.add(image, &lead, &mut draft, range, Room::Cleaning)?;
        self.write(image, &lead, draft, Room::Cleaning)
    }

    fn on_device(&self, log: &Log, index: u32) -> Option<Range> {
        let segment = log.shm.segment(index)?;
        let cursor = self.desk(&log.pool).cursor(index).load(Relaxed);
        let same_use = cursor >> 32 == segment.written().load(Acquire) >> 32;
        let free = segment.state().load(Acquire) == SegmentState::Free as u32;
        let len = (cursor as u32).min(log.layout.segment_bytes) as usize / LINE * LINE;
        (same_use && !free && len > 0).then_some((log.layout.segment(index), len))
    }

    fn move_tail(&self, image: &Region, start: Start) -> Result<(), Errno> {
        let lead = self.lead(image)?;
        let tail = if start.at >= self.desk(image).size().load(Relaxed) { RING_AT } else { start.at };
        mirror::move_start(&lead, image, (tail, start.before))
    }
}
