//! Cleaning: the journal's tail moves, so that its space can be used again.
//!
//! Everything that is live is written once more behind the end: the tables, and those parts of segments in use that are
//! on the device already. After that nothing before the place where this began is needed, and the anchor says so. The
//! live part is never more than the image, a third of the journal, and more than that is kept free for it; after a
//! round of the destager it is next to nothing.
//!
//! Others lead in between: a line that they write again later is later in the journal as well. Cleaning begins only if
//! it can be finished. If a daemon died before it moved the tail, what it wrote takes up room; what its successor's
//! cleaning would write twice has to be destaged first, and there is always room for the rest.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use rustix::io::Errno;
use seawall_media::block::{EXTENT_BYTES, RING_AT};
use seawall_media::{LINE, Region};
use seawall_wire::desk::Desk;
use seawall_wire::shm::SegmentState;

use super::handle::Journal;
use super::mirror;
use super::parts::{PIECE, pieces};
use super::room::{Room, ring, used};
use crate::append::Log;
use crate::format::Layout;
use crate::store::Range;

/// Cleaning is worth its writes once this share of the ring is used: a quarter.
const WORTH: u64 = 4;

/// A place in the journal.
#[derive(Clone, Copy)]
struct Start {
    before: u64,
    at: u64,
}

impl Journal {
    /// Cleans if it is worth it.
    ///
    /// # Errors
    /// EIO once the device failed; ENOSPC if there is no room to make room.
    pub fn clean_if_due(&self, log: &Log) -> Result<bool, Errno> {
        let desk = self.desk(&log.pool);
        if self.has_no_ring(&log.pool) {
            return Ok(false);
        }
        let due = used(desk) > ring(desk).bytes() / WORTH;
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
        if self.has_no_ring(&log.pool) {
            return Ok(());
        }
        if !self.is_cleanable(log) {
            return Err(Errno::NOSPC);
        }
        let start = self.start(&log.pool)?;
        self.tables(&log.pool, log.layout)?;
        for index in 0..log.layout.segments {
            self.segment(log, index)?;
        }
        self.move_tail(&log.pool, start)
    }

    /// Changes tables so that nothing is live any more, and begins a fresh lap with them. Until the tail has moved,
    /// recovery finds the same as before, or less to do.
    ///
    /// # Errors
    /// As for [`clean_if_due`](Self::clean_if_due).
    pub fn close(&self, image: &Region, layout: Layout, change: impl FnOnce()) -> Result<(), Errno> {
        if self.has_no_ring(image) {
            change();
            // Also what became zeros: a copy is changed in place.
            return self.leading(image, |lead| {
                let mut draft = self.draft(image, lead);
                self.add(image, lead, &mut draft, (0, layout.segments_at()), Room::Cleaning)?;
                self.write(image, lead, draft, Room::Cleaning)
            });
        }
        let start = self.start(image)?;
        change();
        self.tables(image, layout)?;
        self.move_tail(image, start)
    }

    /// True if there is room for everything that cleaning would write now. The last room is reserved for tables.
    fn is_cleanable(&self, log: &Log) -> bool {
        let desk = self.desk(&log.pool);
        let (size, end) = (desk.size().load(Relaxed), desk.newest().1);
        let batches = |bytes: usize| most(bytes, desk.block().load(Relaxed) as usize);
        let segments: usize = (0..log.layout.segments)
            .filter_map(|index| self.on_device(log, index))
            .map(|(_, len)| batches(len))
            .sum();
        let tables = batches(pieces(&log.pool, log.layout, 0).count() * PIECE);
        let (wanted, left) = ((segments + tables) as u64, size - end);
        // A batch that does not fit at the ring's end goes to its beginning.
        let unused = if wanted <= left { 0 } else { left.min(Desk::BUFFER as u64) };
        let spare = if segments == 0 { 0 } else { Room::Tables.spare(ring(desk).bytes()) };
        used(desk) + wanted + unused + spare <= ring(desk).bytes()
    }

    /// Where the next batch will begin, and which batch is before it.
    fn start(&self, image: &Region) -> Result<Start, Errno> {
        // With this lead, nobody else is in the middle of changing a table.
        let _lead = self.lead_pinned(image)?;
        let (last, at) = self.desk(image).newest();
        Ok(Start { before: last.number(), at })
    }

    fn tables(&self, image: &Region, layout: Layout) -> Result<(), Errno> {
        self.leading(image, |lead| {
            let mut draft = self.draft(image, lead);
            for at in pieces(image, layout, 0) {
                self.add(image, lead, &mut draft, (at, PIECE), Room::Cleaning)?;
            }
            self.write(image, lead, draft, Room::Cleaning)
        })
    }

    /// Writes the part of a segment that is on the device already; the rest belongs to the next capture.
    fn segment(&self, log: &Log, index: u32) -> Result<(), Errno> {
        let image = &*log.pool;
        self.leading(image, |lead| {
            let Some(range) = self.on_device(log, index) else { return Ok(()) };
            let mut draft = self.draft(image, lead);
            self.add(image, lead, &mut draft, range, Room::Cleaning)?;
            self.write(image, lead, draft, Room::Cleaning)
        })
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
        let lead = self.lead_pinned(image)?;
        let tail = if start.at >= self.desk(image).size().load(Relaxed) { RING_AT } else { start.at };
        mirror::move_start(&lead, image, (tail, start.before))?;
        self.desk(image).cleaned().store(0, Relaxed);
        Ok(())
    }
}

/// The most that batches with this many bytes of the image occupy: each has a header, a table with an entry for each
/// piece, and is padded to a block; and a full batch is never shorter than half of the buffer.
const fn most(bytes: usize, block: usize) -> usize {
    bytes + bytes / PIECE * EXTENT_BYTES + (bytes / (Desk::BUFFER / 2) + 1) * 2 * block
}
