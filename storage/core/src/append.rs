//! Append: records are copied into this thread's lane of the log.
//!
//! Input: a claimed lane and a measured write. Output: its LSN, with every byte stored but not yet fenced
//! (see `persist`). Invariants:
//!
//! * A lane is claimed for the length of one operation, by compare-and-swap, so the lanes of dead processes are easy to
//!   recognize and threads need no registration.
//! * `inflight` holds a lower bound of the operation's LSN from before the LSN is drawn until the publish has ended.
//!   Destage never retires past it, unless another thread took the file's lock from a holder that is stopped, and
//!   retired that write with the file's own content.
//! * A segment belongs to one lane at a time and is filled from the front. Whatever follows the last record is left
//!   over from a former use (another `seq`) or torn, hence invalid.
//!
//! Not handled here: order between writers of one file (`file`), freeing segments (`destage`).

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use rustix::thread::{futex, sched_yield};
use seawall_media::LINE;
use seawall_wire::shm::{Lane, SegmentState, Shm};

use crate::Owner;
use crate::file::Slot;
use crate::format::{Layout, RecordFlags, RecordHeader, RecordKind, SegmentHeader};
use crate::intake::Intake;
use crate::store::Store;

/// The log has no room: the caller writes around it, or waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The parts of the log that appending needs.
pub struct Log {
    /// The pool.
    pub pool: Store,
    /// The run-time memory.
    pub shm: Shm,
    /// Where everything lies in the pool.
    pub layout: Layout,
    /// Low half of the pool's UUID.
    pub uuid_low: u64,
    /// The pool has a spill area: room is made as fast as that area can be written.
    pub spills: bool,
    /// Segments whose pages this process has in its page table.
    pub populated: Populated,
}

/// Remembers segments, roughly: two segments that share a bit cost page faults, nothing else.
#[derive(Default)]
pub struct Populated([AtomicU64; 16]);

impl Populated {
    /// True the first time that a segment is asked for.
    fn is_first(&self, segment: u32) -> bool {
        let bit = segment as usize % (64 * self.0.len());
        let (word, mask) = (&self.0[bit / 64], 1 << (bit % 64));
        word.fetch_or(mask, Relaxed) & mask == 0
    }
}

/// What is to be appended.
#[derive(Clone, Copy)]
pub struct NewRecord {
    /// What it does.
    pub kind: RecordKind,
    /// File slot.
    pub slot: u32,
    /// Generation of the slot.
    pub generation: u32,
    /// Offset in the file, or its new size.
    pub offset: u64,
    /// The data's measure.
    pub intake: Intake,
}

/// A claimed lane: one operation from before its LSN until after its publish.
pub struct Operation<'a> {
    log: &'a Log,
    lane: Lane<'a>,
    index: u32,
    /// Where the lane's fenced bytes end.
    fenced: u32,
    first: u64,
}

/// Rounds over all lanes before giving up: each round ends with a yield.
const ROUNDS: u32 = 10_000;

impl Log {
    /// Claims a lane for `who`. `None` only if every lane stays taken, for example by processes that died while no
    /// daemon was alive to reclaim their lanes.
    #[inline]
    pub fn claim(&self, who: Owner) -> Option<Operation<'_>> {
        let lanes = self.shm.shape().lanes;
        let first = who.spread() % lanes;
        for round in 0..ROUNDS {
            for i in 0..lanes {
                let index = (first + i) % lanes;
                let lane = self.shm.lane(index)?;
                if lane.owner().compare_exchange(0, who.word(), Acquire, Relaxed).is_ok() {
                    return Some(Operation::begin(self, lane, index));
                }
            }
            if round > 0 {
                sched_yield();
            }
        }
        None
    }

    /// True if the log takes a write of this measure when it is empty enough; others go around it.
    pub fn fits(&self, intake: &Intake) -> bool {
        intake.stored <= self.longest() && intake.length <= u64::from(u32::MAX)
    }

    fn longest(&self) -> u64 {
        u64::from(self.layout.segments / 4) * u64::from(self.layout.segment_bytes)
    }

    /// Takes the first free segment: a few are used again and again, so their pages are mapped already and
    /// their lines are likely cached.
    fn take_segment(&self, lane: u32) -> Option<u32> {
        let header = self.shm.header();
        let n = self.pool.backed(self.layout);
        let start = header.segment_cursor().load(Relaxed) % n.max(1);
        for index in (start..n).chain(0..start) {
            if self.shm.segment(index)?.claim(lane) {
                header.segment_cursor().store((index + 1) % n, Relaxed);
                if self.populated.is_first(index) {
                    self.pool.populate(self.layout.segment(index), self.layout.segment_bytes as usize);
                }
                let free = header.free_segments().fetch_sub(1, Relaxed).saturating_sub(1);
                if free < n / 2 {
                    self.wake_daemon();
                }
                return Some(index);
            }
        }
        self.wake_daemon();
        None
    }

    /// All writes at or below this LSN have been published or do not count.
    pub fn stable_lsn(&self) -> u64 {
        let next = self.shm.header().next_lsn().load(SeqCst);
        let inflight = self.shm.lanes().map(|lane| (lane, lane.inflight().load(SeqCst)));
        let counts = inflight.filter(|(lane, lsn)| *lsn != 0 && !self.is_lost(*lane, *lsn));
        counts.map(|(_, lsn)| lsn).fold(next, u64::min) - 1
    }

    /// True for the lane of a write that no longer counts: its thread lost the file's lock while it was stopped, and
    /// the new holder has synced the file and raised its watermark. The thread finds that out when it goes on.
    fn is_lost(&self, lane: Lane<'_>, inflight: u64) -> bool {
        let (owner, lsn) = (lane.owner().load(SeqCst), lane.lsn().load(SeqCst));
        let Some(slot) = Slot::of(&self.shm, lane.slot().load(SeqCst)) else { return false };
        let is_retired = lsn != 0 && lsn <= slot.watermark() && slot.holder() != owner;
        // Otherwise the lane may belong to another operation by now, and its number tells nothing about this one.
        is_retired && lane.inflight().load(SeqCst) == inflight
    }

    /// Asks the daemon to look.
    pub fn wake_daemon(&self) {
        let bell = self.shm.header();
        let bell = bell.bell();
        bell.fetch_add(1, Release);
        // No daemon may be listening; then nothing is freed, and the log fills.
        let _ = futex::wake(bell, futex::Flags::empty(), i32::MAX as u32);
    }
}

impl<'a> Operation<'a> {
    #[inline]
    fn begin(log: &'a Log, lane: Lane<'a>, index: u32) -> Self {
        // A thread that sees the next LSN taken sees this store too: the same thread draws that LSN later, with a
        // release.
        lane.inflight().store(log.shm.header().next_lsn().load(Acquire), Relaxed);
        Self { log, lane, index, fenced: lane.tail().load(Relaxed) as u32, first: 0 }
    }

    /// Index of the lane, for statistics.
    #[inline]
    pub fn lane(&self) -> u32 {
        self.index
    }

    /// Draws the operation's LSN. Called with the file's lock held, so a file's LSNs follow its order.
    #[inline]
    pub fn draw(&self, slot: u32) -> u64 {
        self.lane.slot().store(slot, Relaxed);
        let lsn = self.log.shm.header().next_lsn().fetch_add(1, SeqCst);
        self.lane.lsn().store(lsn, Relaxed);
        lsn
    }

    /// Copies the records of one write into the lane.
    ///
    /// # Errors
    /// [`Full`]: nothing that was stored counts, but the file must leave the log, which retires `lsn`.
    #[inline]
    pub fn append<'d>(
        &mut self,
        lsn: u64,
        record: &NewRecord,
        data: impl Iterator<Item = &'d [u8]>,
    ) -> Result<(), Full> {
        if !self.log.fits(&record.intake) {
            return Err(Full);
        }
        let mut data = Slices::new(data, record.intake.stored);
        let mut part = 0;
        loop {
            let (at, room) = self.room()?;
            let header = Self::header(lsn, record, part, data.left, room);
            let last = header.flags & RecordFlags::LAST != 0;
            self.store(at, header, &mut data);
            if last {
                return Ok(());
            }
            part += 1;
        }
    }

    /// The header of the next part, with `left` stored bytes to go and `room` for header and payload.
    fn header(lsn: u64, record: &NewRecord, part: u16, left: u64, room: usize) -> RecordHeader {
        let done = record.intake.stored - left;
        let stored = left.min((room - LINE) as u64);
        let mut h = RecordHeader::new(record.kind);
        (h.lsn, h.part, h.slot, h.generation) = (lsn, part, record.slot, record.generation);
        h.offset = record.offset + done;
        h.stored = stored as u32;
        h.length = h.stored;
        if stored == left {
            h.flags = RecordFlags::LAST;
            h.length = (record.intake.length - done) as u32;
        }
        h
    }

    /// Payload first, then its header: the header is one line with the payload's checksum in it.
    #[inline]
    fn store<'d>(
        &mut self,
        at: usize,
        mut header: RecordHeader,
        data: &mut Slices<'d, impl Iterator<Item = &'d [u8]>>,
    ) {
        header.segment_seq = self.lane.seq().load(Relaxed);
        let mut stream = self.log.pool.stream(at + LINE);
        data.take(header.stored as usize, |bytes| stream.push(bytes));
        header.payload = stream.finish();
        header.store(&self.log.pool, at);
        self.advance(header.lsn, header.extent());
    }

    fn advance(&mut self, lsn: u64, extent: usize) {
        let tail = self.lane.tail().load(Relaxed);
        let index = self.lane.segment().load(Relaxed) - 1;
        if let Some(segment) = self.log.shm.segment(index) {
            segment.last_lsn().store(lsn, Release);
            let end = tail + extent as u64;
            segment.written().store(self.lane.seq().load(Relaxed) << 32 | end, Release);
        }
        if self.first == 0 {
            self.first = (u64::from(index) << 32) | (tail / LINE as u64);
        }
        self.lane.tail().store(tail + extent as u64, Relaxed);
    }

    /// Place for a record in the open segment, or in a fresh one: where, and how many bytes.
    #[inline]
    fn room(&mut self) -> Result<(usize, usize), Full> {
        let bytes = self.log.layout.segment_bytes as usize;
        let open = self.lane.segment().load(Relaxed);
        let tail = self.lane.tail().load(Relaxed) as usize;
        if open != 0 && open <= self.log.layout.segments && tail + 2 * LINE <= bytes {
            return Ok((self.log.layout.segment(open - 1) + tail, bytes - tail));
        }
        let index = self.open_segment()?;
        Ok((self.log.layout.segment(index) + LINE, bytes - LINE))
    }

    #[cold]
    fn open_segment(&mut self) -> Result<u32, Full> {
        let index = self.log.take_segment(self.index).ok_or(Full)?;
        let seq = self.log.shm.header().next_lsn().fetch_add(1, SeqCst);
        let mut header = SegmentHeader::new(self.index, seq, self.log.uuid_low);
        let previous = self.lane.segment().load(Relaxed);
        if let Some(old) = previous.checked_sub(1).and_then(|i| self.log.shm.segment(i)) {
            header.previous = previous - 1;
            header.previous_seq = self.lane.seq().load(Relaxed);
            header.previous_lsn = old.last_lsn().load(Relaxed);
            header.previous_end = self.fenced;
            old.state().store(SegmentState::Full as u32, Release);
        }
        if let Some(new) = self.log.shm.segment(index) {
            new.last_lsn().store(seq, Release);
        }
        header.store(&self.log.pool, self.log.layout.segment(index));
        self.lane.segment().store(index + 1, Relaxed);
        self.lane.seq().store(seq, Relaxed);
        self.lane.tail().store(LINE as u64, Relaxed);
        // Not even its header is fenced yet: if this write goes on into a third segment, that segment must not claim
        // anything about this one.
        self.fenced = 0;
        Ok(index)
    }

    /// Marks the appended records as persisted and their publish as begun: from here on the daemon finishes the write
    /// if this process dies.
    #[inline]
    pub fn publishing(&self) {
        self.lane.record().store(self.first, Release);
    }
}

impl Drop for Operation<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lane.record().store(0, Release);
        self.lane.lsn().store(0, Relaxed);
        self.lane.inflight().store(0, Release);
        self.lane.owner().store(0, Release);
    }
}

/// The caller's slices, cut to the bytes that are stored.
struct Slices<'d, I> {
    rest: I,
    now: &'d [u8],
    left: u64,
}

impl<'d, I: Iterator<Item = &'d [u8]>> Slices<'d, I> {
    #[inline]
    fn new(data: I, stored: u64) -> Self {
        Self { rest: data, now: &[], left: stored }
    }

    /// Hands out the next `n` bytes in as many pieces as they come in.
    #[inline]
    fn take(&mut self, mut n: usize, mut each: impl FnMut(&'d [u8])) {
        self.left -= n as u64;
        while n > 0 {
            if self.now.is_empty() {
                let Some(next) = self.rest.next() else { return };
                self.now = next;
                continue;
            }
            let (head, tail) = self.now.split_at(n.min(self.now.len()));
            each(head);
            n -= head.len();
            self.now = tail;
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::pool;
    use crate::takeover::start;

    /// A write is stopped, and another thread has taken its file's lock but has not retired the record yet: until it
    /// has, nothing may be retired past that record.
    #[test]
    fn a_write_that_lost_its_lock_counts_until_its_record_is_retired() {
        let memory = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let path = memory.path().join("pool");
        pool::create(&path, Layout::MIN_SIZE, true, false).expect("made");
        let mut pool = pool::open(&path).expect("opened");
        let engine = start(&mut pool, memory.path()).expect("started").engine;
        let (log, [first, second]) = (&engine.log, [1, 2].map(|client| Owner::new(client, 1 << 4)));
        let lsn = log.shm.header().next_lsn().fetch_add(1, SeqCst);
        let lane = log.shm.lane(3).expect("a lane");
        lane.owner().store(first.word(), SeqCst);
        lane.slot().store(0, SeqCst);
        lane.lsn().store(lsn, SeqCst);
        lane.inflight().store(lsn, SeqCst);
        let slot = Slot::of(&log.shm, 0).expect("a slot");
        assert!(slot.watermark() < lsn);
        let _inside = slot.try_enter(second).expect("it has the lock");
        assert_eq!(log.stable_lsn(), lsn - 1);
        lane.inflight().store(0, SeqCst);
        assert_eq!(log.stable_lsn(), lsn, "nothing is under way");
    }
}
