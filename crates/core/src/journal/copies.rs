//! Copies of the log on other hosts: a batch is committed when enough of them have confirmed it, and there is no device.
//!
//! Who they are, how they are reached and how many are enough is the [`Copies`]'s. Here: what they are sent, and what a copy
//! gets that is to be made anew while the log goes on ([`Standing`]). All of it is done by whoever leads, and cannot be
//! replaced meanwhile: the order in which batches are sent is that of their numbers.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::vec::Vec;

use rustix::io::Errno;
use seawall_media::block::Draft;
use seawall_media::{LINE, Region};
use seawall_stats::ticks;
use seawall_wire::desk::{Desk, LastWord};

use super::company;
use super::handle::Journal;
use super::lead::REPLACED;
use super::writer::{Writer, fail};
use crate::format::{Layout, SegmentHeader, Superblock};

/// Bytes of a stretch.
const STRETCH: usize = 256 << 10;
/// Tables are looked through in pieces of this size; those of zeros are not sent.
const PIECE: usize = 512;
/// The offset in a cursor; above it the use of the segment.
const OFFSET: u64 = u32::MAX as u64;

/// Whoever keeps copies of a log.
pub trait Copies: Send + Sync {
    /// Sends a batch to all of them, and waits until enough have confirmed it.
    ///
    /// # Errors
    /// EIO: it may be kept or not, and nothing is ever kept again by this writer.
    fn write(&self, batch: &Sending<'_>) -> Result<(), Errno>;
}

/// A batch that is to be sent.
pub struct Sending<'a> {
    /// The log in front of it.
    pub standing: Standing<'a>,
    /// Its number.
    pub number: u64,
    at: usize,
    len: usize,
}

impl Sending<'_> {
    /// Copies its bytes out.
    pub fn copy_to(&self, bytes: &mut Vec<u8>) {
        bytes.resize(self.len, 0);
        self.standing.image.read(self.at, bytes);
    }
}

/// A log between two batches: nobody commits one, and no table is being changed.
pub struct Standing<'a> {
    image: &'a Region,
    desk: Desk<'a>,
    layout: Layout,
    uuid_low: u64,
    /// The newest batch that counts.
    pub last: u64,
}

impl<'a> Standing<'a> {
    fn of(desk: Desk<'a>, image: &'a Region) -> Result<Self, Errno> {
        let superblock = Superblock::read(image).map_err(|_| Errno::IO)?;
        let last = desk.newest().0.number();
        Ok(Self { image, desk, layout: superblock.layout(), uuid_low: superblock.uuid_low(), last })
    }

    /// The next stretch from `from` on of what a copy has that is up to date with [`last`](Self::last): where in the image
    /// it is, and its bytes. What no batch has yet is left out, since the newer of it may be there and the older not.
    pub fn stretch(&self, from: u64, bytes: &mut Vec<u8>) -> Option<u64> {
        let tables = self.layout.segments_at();
        let from = usize::try_from(from).ok()?;
        if from < tables {
            let found =
                (from..tables).step_by(PIECE).find(|at| self.take(*at, PIECE.min(tables - at), bytes));
            if let Some(at) = found {
                return Some(at as u64);
            }
        }
        let size = self.layout.segment_bytes as usize;
        let first = from.saturating_sub(tables) / size;
        (first as u32..self.layout.segments).find_map(|index| {
            let begin = self.layout.segment(index);
            let at = from.max(begin);
            self.of_segment(index, at - begin, bytes).then_some(at as u64)
        })
    }

    /// Bytes of a table; false for zeros.
    fn take(&self, at: usize, len: usize, bytes: &mut Vec<u8>) -> bool {
        bytes.resize(len, 0);
        self.image.read(at, bytes);
        bytes.iter().any(|byte| *byte != 0)
    }

    /// What batches have of a segment, from this offset in it on.
    fn of_segment(&self, index: u32, from: usize, bytes: &mut Vec<u8>) -> bool {
        let (cursor, begin) = (self.desk.cursor(index).load(Relaxed), self.layout.segment(index));
        let end = (cursor & OFFSET).min(u64::from(self.layout.segment_bytes)) as usize;
        let is_same_use = || {
            SegmentHeader::read(self.image, begin, self.uuid_low)
                .is_some_and(|h| h.seq & OFFSET == cursor >> 32)
        };
        if from >= end || !is_same_use() {
            return false;
        }
        bytes.resize((end - from).min(STRETCH), 0);
        self.image.read(begin + from, bytes);
        // It may have begun anew meanwhile: what it holds then is in no batch.
        is_same_use()
    }
}

impl Journal {
    /// Acts while the log stands: nobody commits a batch or changes a table.
    ///
    /// # Errors
    /// EIO once the copies failed; EBADF without a way to them.
    pub fn standing<R>(&self, image: &Region, act: impl FnOnce(&Standing<'_>) -> R) -> Result<R, Errno> {
        let lead = self.lead_pinned(image)?;
        Standing::of(lead.desk(), image).map(|standing| act(&standing))
    }

    /// Sends a batch, and commits it.
    ///
    /// # Errors
    /// [`REPLACED`] if somebody else leads by now: nothing was sent. Else as for [`Copies::write`].
    pub(super) fn send(
        &self,
        image: &Region,
        lead: &Writer<'_>,
        draft: Draft<'_>,
        copies: &dyn Copies,
    ) -> Result<(), Errno> {
        lead.pinned(|| self.send_pinned(image, lead, draft, copies))
    }

    fn send_pinned(
        &self,
        image: &Region,
        lead: &Writer<'_>,
        draft: Draft<'_>,
        copies: &dyn Copies,
    ) -> Result<(), Errno> {
        let desk = self.desk(image);
        let standing = Standing::of(desk, image)?;
        let (last, data) = (desk.newest().0, draft.data() as u64);
        let number = desk.claimed().fetch_add(1, SeqCst) + 1;
        let len = draft.seal(number, last.number(), 0, desk.uuid_low().load(Relaxed), LINE as u32);
        let at = desk.buffer(lead.seat()).0;
        let began = ticks();
        let sent = copies.write(&Sending { standing, number, at, len });
        let ended = ticks();
        lead.has_spent(ended.wrapping_sub(began));
        sent.map_err(|error| fail(desk, error))?;
        company::wrote(desk, began..ended);
        let next = LastWord::new(number, lead.seat());
        desk.last().compare_exchange(last.0, next.0, SeqCst, Relaxed).map_err(|_| REPLACED)?;
        desk.replaced().store(0, Relaxed);
        desk.writes().fetch_add(1, Relaxed);
        desk.bytes().fetch_add(len as u64, Relaxed);
        desk.data().fetch_add(data, Relaxed);
        Ok(())
    }
}
