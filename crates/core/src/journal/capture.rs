//! Capture: which records go into the next batch, and who waits for that.
//!
//! # The cut
//!
//! `next_lsn` is read first: that is the cut. Then, segment by segment, how far each is filled; and of that only
//! records below the cut are taken. Why this is a state that persistent memory could have left:
//!
//! * A record below the cut was drawn before the cut was read. Whatever had been fenced before that draw was in
//!   the image by then, and its segment said so: an earlier record of the file (its lock is held from the draw to the
//!   publish), an earlier one of the thread, the lane's earlier segments that a segment's header vouches for. All
//!   were noted afterwards, so all are taken, or were before.
//! * Noting alone would not do: a lane that was noted first may get a record, and a lane that is noted later one of
//!   the same file that follows it.
//! * Tables that a record depends on (its file's entry, the retired LSN that set its segment free) were on the
//!   device before anybody relied on them.
//!
//! # Tickets
//!
//! A sync needs a capture that *begins* after it did. To know an LSN would not do: a record drawn below the cut and
//! finished after its segment was noted is not in that batch.

use core::ops::Range;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use core::sync::atomic::fence;

use seawall_media::LINE;
use seawall_wire::shm::SegmentState;

use super::lock::{REPLACED, Wait};
use super::way::Writer;
use super::{Journal, Room, company};
use crate::Errno;
use crate::append::Log;
use crate::format::{RecordHeader, SegmentHeader};

/// The offset in a cursor; above it the use of the segment (`Segment::written`).
const OFFSET: u64 = u32::MAX as u64;

impl Journal {
    /// Returns when every record up to `lsn` that was whole when this was called is on the device: `None` if it was
    /// there already, else how many ticks this thread spent on writing to it.
    ///
    /// # Errors
    /// EIO once the device failed; ENOSPC if the journal is full.
    pub fn harden(&self, log: &Log, lsn: u64) -> Result<Option<u64>, Errno> {
        if lsn <= self.desk(&log.pool).hardened().load(Acquire) {
            return Ok(None);
        }
        match (self.wait(log), self.way.lender()) {
            (Err(Errno::BADF), Some(lender)) => lender.harden().map(|()| Some(0)),
            (done, _) => done.map(Some),
        }
    }

    /// Waits for a capture that begins from now on.
    fn wait(&self, log: &Log) -> Result<u64, Errno> {
        let desk = self.desk(&log.pool);
        // What this thread stored is seen by any capture that begins after this look.
        fence(SeqCst);
        let ticket = desk.begun().load(SeqCst) + 1;
        let is_first = company::join(desk);
        let (mut wait, mut spent, clock) =
            (Wait::new(self, &log.pool, is_first), 0, log.shm.header().clock());
        loop {
            wait.look(ticket);
            if desk.done().load(Acquire) >= ticket {
                return Ok(spent);
            }
            if desk.failed().load(Acquire) != 0 {
                return Err(Errno::IO);
            }
            if let Some(ns) = company::patience(desk, clock) {
                wait.gather(ns);
                continue;
            }
            match wait.try_lead() {
                Some(lead) => {
                    let lead = lead.with(&self.way)?;
                    let done = self.round(log, &lead, ticket);
                    spent += lead.spent();
                    // Whoever took its place may have served it.
                    done.or_else(|error| if error == REPLACED { Ok(()) } else { Err(error) })?;
                }
                None => wait.nap(),
            }
        }
    }

    /// One capture, unless the ticket was served meanwhile.
    fn round(&self, log: &Log, lead: &Writer<'_>, ticket: u64) -> Result<(), Errno> {
        let desk = self.desk(&log.pool);
        if desk.done().load(Acquire) >= ticket {
            return Ok(());
        }
        company::count(desk);
        let capture = desk.begun().fetch_add(1, SeqCst) + 1;
        let stable = log.stable_lsn();
        self.capture(log, lead)?;
        desk.leads().fetch_add(1, Relaxed);
        desk.hardened().fetch_max(stable, SeqCst);
        desk.done().fetch_max(capture, SeqCst);
        Ok(())
    }

    /// Notes, copies and writes; the cursors move when all of it is on the device, unless somebody moved them meanwhile. Cut
    /// short anywhere, the next capture takes the same bytes again, which changes nothing.
    fn capture(&self, log: &Log, lead: &Writer<'_>) -> Result<(), Errno> {
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
                // One that fails is of a leader that was replaced between its commit and here.
                let _ = desk.cursor(index).compare_exchange(from, to, SeqCst, Relaxed);
            }
        }
        Ok(())
    }

    /// Notes for each segment how far it is to be on the device; returns where those with anything to do lie.
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

/// How far a segment is whole and below the cut, if that is not on the device yet; as a cursor, which is there now.
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

/// Where in a segment what is not on the device begins: at its front, if the cursor is of a former use.
fn begin(cursor: u64, written: u64) -> u64 {
    if cursor >> 32 == written >> 32 { cursor & OFFSET } else { 0 }
}

/// Where the records from `from` on that are below the cut end. `None`: the segment is being used anew.
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
    // A header alone says nothing.
    (LINE as u64 + 1..=end).contains(&at).then_some(at)
}
