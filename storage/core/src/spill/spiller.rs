//! The daemon's part: full segments are copied to the area, and freed.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use seawall_media::block::Device;
use seawall_media::{Region, crc32c, fence};
use seawall_wire::shm::SegmentState;

use crate::Engine;
use crate::destage::{announce, count_free};
use crate::format::{Cell, Layout, SegmentHeader, SpillEntry, Spilled, slot_at};
use crate::pool::Pool;

/// Most bytes that go to the area in one durable write: beside them a flush costs little.
const BATCH: usize = 4 << 20;
/// The part of the log that is copied at once: in a small log it is little, so that segments become free while others
/// are being taken.
const AT_ONCE: u32 = 32;
/// When less than this part of the log is free, segments are copied. A data disk that keeps up is asked for everything
/// when half is free, and never lets it come to that.
const SHORT: u32 = 4;

/// The area's state, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spilling {
    /// Slots that hold segments which are not retired.
    pub used: u32,
    /// All slots.
    pub slots: u32,
    /// Bytes that were copied to it since the daemon began.
    pub bytes: u64,
    /// Its device failed: nothing is copied any more.
    pub failed: Option<Errno>,
}

/// A segment on its way.
struct Copied {
    segment: u32,
    value: Spilled,
}

/// Copies full segments to the area. One per pool, in its daemon.
pub struct Spiller {
    device: Device,
    layout: Layout,
    uuid_low: u64,
    /// The content of every slot's entry.
    slots: Vec<Spilled>,
    /// Memory that may be written from: aligned, and used by nobody else.
    buffer: Region,
    /// The slot behind the last one written.
    next: u32,
    bytes: u64,
    failed: Option<Errno>,
}

impl Spiller {
    /// The spiller of a pool, or `None` if the pool has no area.
    ///
    /// # Errors
    /// The area cannot be written, or an entry is damaged.
    pub fn open(pool: &Pool) -> io::Result<Option<Self>> {
        let Some(area) = &pool.area else { return Ok(None) };
        let layout = pool.layout();
        let entry = |slot| SpillEntry::of(layout, slot).load(&pool.region);
        let slots: Option<Vec<Spilled>> = (0..area.slots()).map(entry).collect();
        let slots = slots
            .ok_or_else(|| io::Error::other("the pool's description of the spill area's slots is damaged"))?;
        let segment = layout.segment_bytes as usize;
        let bytes = (layout.segments / AT_ONCE) as usize * segment;
        let bytes = bytes.clamp(segment, BATCH.max(segment));
        let memory = File::from(rustix::fs::memfd_create("seawall-spill", MemfdFlags::CLOEXEC)?);
        memory.set_len(bytes as u64)?;
        let buffer =
            Region::map(&memory, bytes as u64, false).map_err(|e| io::Error::other(format!("{e:?}")))?;
        // An earlier daemon may have been killed before its fence: the visible entries need not be persisted.
        for slot in 0..area.slots() {
            let (at, len) = SpillEntry::of(layout, slot).range();
            pool.region.flush(at, len);
        }
        fence();
        let (device, uuid_low) = (Device::new(area.for_writing()?), pool.superblock.uuid_low());
        Ok(Some(Self { device, layout, uuid_low, slots, buffer, next: 0, bytes: 0, failed: None }))
    }

    /// From now on writes go elsewhere, as to a device that fails.
    #[doc(hidden)]
    pub fn fail_for_tests(&mut self, device: std::os::fd::OwnedFd) {
        self.device = Device::new(device);
    }

    /// Copies segments while the log is short of free ones and the area has room. Returns how many became free.
    ///
    /// # Errors
    /// The area's device failed. The segments stay, and nothing is copied any more.
    pub fn round(&mut self, engine: &Engine) -> Result<u32, Errno> {
        let mut freed = 0;
        loop {
            match self.step(engine)? {
                0 => return Ok(freed),
                n => freed += n,
            }
        }
    }

    /// Part of a round: one write to the area. Returns how many segments became free; 0 at the end of the round.
    ///
    /// # Errors
    /// As for [`round`](Self::round).
    pub fn step(&mut self, engine: &Engine) -> Result<u32, Errno> {
        let is_short = self.failed.is_none() && count_free(engine) < self.layout.segments / SHORT;
        if is_short { self.batch(engine) } else { Ok(0) }
    }

    /// One write to the area, and its consequences.
    fn batch(&mut self, engine: &Engine) -> Result<u32, Errno> {
        let retired = Cell::at(Layout::retired()).load(engine.pool()).unwrap_or(0);
        let (first, room) = self.free_slots(retired);
        let copied = self.take(engine, retired, room);
        if copied.is_empty() {
            return Ok(0);
        }
        let len = copied.len() * self.layout.segment_bytes as usize;
        let at = slot_at(first, self.layout.segment_bytes);
        if let Err(e) = Device::write(self.device.as_fd(), &self.buffer, 0, len, at) {
            // The content of these slots is unknown, and no entry names it.
            self.failed = Some(e);
            copied.iter().for_each(|c| give(engine, c.segment, SegmentState::Full));
            return Err(e);
        }
        let values = || (first..).zip(copied.iter().map(|c| c.value));
        let entries: Vec<_> = values().map(|(slot, v)| (SpillEntry::of(self.layout, slot), v)).collect();
        SpillEntry::change(engine.pool(), &entries);
        values().for_each(|(slot, v)| self.slots[slot as usize] = v);
        copied.iter().for_each(|c| give(engine, c.segment, SegmentState::Free));
        let n = copied.len() as u32;
        announce(engine, n);
        self.next = (first + n) % self.slots.len() as u32;
        self.bytes += len as u64;
        Ok(n)
    }

    /// Free slots that are adjacent, no more than a batch: the first, and how many.
    fn free_slots(&self, retired: u64) -> (u32, usize) {
        let most = self.buffer.len() / self.layout.segment_bytes as usize;
        let n = self.slots.len();
        let is_free = |slot: &usize| self.slots[*slot].last_lsn <= retired;
        let next = (self.next as usize).min(n);
        let Some(first) = (next..n).chain(0..next).find(is_free) else { return (0, 0) };
        (first as u32, (first..n.min(first + most)).take_while(is_free).count())
    }

    /// Copies the oldest full segments into the buffer, as many as there is room for. They belong to nobody else until
    /// they are freed.
    fn take(&self, engine: &Engine, retired: u64, room: usize) -> Vec<Copied> {
        let stable = engine.log.stable_lsn();
        let last = |i: u32| engine.shm().segment(i).map_or(0, |s| s.last_lsn().load(Acquire));
        let is_due = |i: &u32| {
            let state = engine.shm().segment(*i).map_or(0, |s| s.state().load(Acquire));
            state == SegmentState::Full as u32 && last(*i) > retired && is_published(last(*i), stable)
        };
        let mut due: Vec<u32> = (0..self.layout.segments).filter(is_due).collect();
        due.sort_by_key(|i| last(*i));
        let mut copied: Vec<Copied> = Vec::new();
        for segment in due {
            if copied.len() == room {
                break;
            }
            copied.extend(self.copy(engine, segment, stable, copied.len()));
        }
        copied
    }

    /// Copies one segment to its place in the buffer, unless somebody else was quicker.
    fn copy(&self, engine: &Engine, segment: u32, stable: u64, place: usize) -> Option<Copied> {
        let shm = engine.shm().segment(segment)?;
        let (full, mine) = (SegmentState::Full as u32, SegmentState::Spilling as u32);
        shm.state().compare_exchange(full, mine, AcqRel, Relaxed).ok()?;
        let last_lsn = shm.last_lsn().load(Acquire);
        let at = self.layout.segment(segment);
        let header = SegmentHeader::read(engine.pool(), at, self.uuid_low);
        let Some(header) = header.filter(|_| is_published(last_lsn, stable)) else {
            // It is another use of the segment by now; or its header is damaged, which recovery should find.
            shm.state().store(full, Release);
            return None;
        };
        let mut bytes = vec![0; self.layout.segment_bytes as usize];
        engine.pool().read(at, &mut bytes);
        self.buffer.copy_in(place * bytes.len(), &bytes);
        Some(Copied { segment, value: Spilled { seq: header.seq, last_lsn, sum: crc32c(&bytes) } })
    }

    /// The area's state. `retired`: the pool's retired LSN.
    pub fn spilling(&self, retired: u64) -> Spilling {
        let used = self.slots.iter().filter(|slot| slot.last_lsn > retired).count() as u32;
        Spilling { used, slots: self.slots.len() as u32, bytes: self.bytes, failed: self.failed }
    }
}

/// True if nobody is publishing anything in a segment with this highest LSN, and nobody will after a death.
fn is_published(last_lsn: u64, stable: u64) -> bool {
    last_lsn <= stable
}

/// No copy is under way: an earlier daemon of this boot was killed. The segments it was about to copy are full as
/// before; if an entry names one already, that one is copied twice, and recovery takes it once.
pub(crate) fn inherit(engine: &Engine) {
    for segment in (0..engine.layout().segments).filter_map(|i| engine.shm().segment(i)) {
        let (mine, full) = (SegmentState::Spilling as u32, SegmentState::Full as u32);
        // Nobody else changes one in this state.
        let _ = segment.state().compare_exchange(mine, full, AcqRel, Relaxed);
    }
}

fn give(engine: &Engine, segment: u32, state: SegmentState) {
    if let Some(segment) = engine.shm().segment(segment) {
        segment.state().store(state as u32, Release);
    }
    engine.shm().header().segment_cursor().fetch_min(segment, Relaxed);
}
