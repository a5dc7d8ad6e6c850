//! Capture: which records go into the next batch.
//!
//! # The cut
//!
//! `next_lsn` is read first: that is the cut. Then, segment by segment, the leader notes how far each one is filled,
//! and takes only records below the cut. Persistent memory could have left the same state:
//!
//! * A record below the cut was drawn before the cut was read. Everything that had been fenced before that draw was in
//!   the image by then, and its segment showed it: an earlier record of the file (its lock is held from the draw to the
//!   publish), an earlier one of the thread, the lane's earlier segments that a segment's header vouches for. All of
//!   these were noted later than that, so all are taken now, or were taken before.
//! * Noting alone would not do: a lane that was noted first may get a record, and a lane that is noted later may hold a
//!   record of the same file that follows it.
//! * Tables that a record depends on (its file's entry, the retired LSN that freed its segment) were on the device
//!   before anybody relied on them.

use core::ops::Range;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use rustix::io::Errno;
use seawall_media::LINE;
use seawall_wire::shm::SegmentState;

use super::handle::Journal;
use super::parts::OFFSET;
use super::room::Room;
use super::writer::Writer;
use crate::append::Log;
use crate::format::{RecordHeader, SegmentHeader};

impl Journal {
    /// Notes, copies and writes. The cursors move when all of it is on the device, unless another thread moved them
    /// meanwhile. If this is cut short anywhere, the next capture takes the same bytes again, which changes nothing.
    pub(super) fn capture(&self, log: &Log, lead: &Writer<'_>) -> Result<(), Errno> {
        let (desk, image) = (self.desk(&log.pool), &*log.pool);
        let cut = log.shm.header().next_lsn().load(SeqCst);
        let noted = self.note(log, lead, cut);
        let mut draft = self.draft(image, lead);
        let note = |index| desk.note(lead.seat(), log.layout.segments, index);
        for index in noted.clone() {
            let (from, to) = (note(index).0.load(Relaxed), note(index).1.load(Relaxed));
            if to != 0 {
                let begin = begin(from, to);
                let at = log.layout.segment(index) + begin as usize;
                let len = ((to & OFFSET) - begin) as usize;
                self.add(image, lead, &mut draft, (at, len), Room::Records)?;
            }
        }
        self.write(image, lead, draft, Room::Records)?;
        for index in noted {
            let (from, to) = (note(index).0.load(Relaxed), note(index).1.load(Relaxed));
            if to != 0 {
                // If this fails, this leader was replaced between its commit and here.
                let _ = desk.cursor(index).compare_exchange(from, to, SeqCst, Relaxed);
            }
        }
        Ok(())
    }

    /// Notes for each segment how much of it this capture brings to the device; returns the range of segments with
    /// anything to do.
    fn note(&self, log: &Log, lead: &Writer<'_>, cut: u64) -> Range<u32> {
        let desk = self.desk(&log.pool);
        let mut noted = 0..0;
        for index in 0..log.layout.segments {
            let cursor = desk.cursor(index).load(Relaxed);
            let to = find(log, index, cursor, cut).unwrap_or(0);
            if to != 0 {
                noted = if noted.is_empty() { index..index + 1 } else { noted.start..index + 1 };
            }
            if !noted.is_empty() {
                let (before, after) = desk.note(lead.seat(), log.layout.segments, index);
                before.store(cursor, Relaxed);
                after.store(to, Relaxed);
            }
        }
        noted
    }
}

/// How far a segment is whole and below the cut, if that part is not on the device yet; in the form of a cursor that
/// has it.
fn find(log: &Log, index: u32, cursor: u64, cut: u64) -> Option<u64> {
    let segment = log.shm.segment(index)?;
    if segment.state().load(Acquire) == SegmentState::Free as u32 {
        return None;
    }
    let written = segment.written().load(Acquire);
    let from = begin(cursor, written);
    let end = (written & OFFSET).min(u64::from(log.layout.segment_bytes));
    let to = below(log, log.layout.segment(index), written >> 32, from, end, cut)?;
    (to > from).then_some(written & !OFFSET | to)
}

/// Where the part of a segment that is not on the device begins: at its front, if the cursor is from a former use.
fn begin(cursor: u64, written: u64) -> u64 {
    if cursor >> 32 == written >> 32 { cursor & OFFSET } else { 0 }
}

/// Where the records below the cut end, counted from `from`. `None`: the segment is being used anew.
fn below(log: &Log, base: usize, tag: u64, from: u64, end: u64, cut: u64) -> Option<u64> {
    if from >= end {
        return None;
    }
    let header = SegmentHeader::read(&log.pool, base, log.uuid_low).filter(|h| h.seq & OFFSET == tag)?;
    let mut at = from.max(LINE as u64);
    while at < end {
        let record = RecordHeader::read(&log.pool, base + at as usize, header.seq);
        let Some(record) = record.filter(|r| r.lsn < cut) else { break };
        at += record.extent() as u64;
    }
    // A segment header alone is no record.
    (LINE as u64 + 1..=end).contains(&at).then_some(at)
}
