//! What a guest asks of its disk (virtio 1.2, 5.2.6): parsed, checked, carried out.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use seawall_core::Errno;
use vm_memory::{Bytes, GuestAddress};

use crate::chain::{Chain, Malformed, Stretch, length, slices};
use crate::config::{LONGEST_ZEROS, RANGES, SECTOR};
use crate::disk::{Disk, SERIAL};
use crate::log::Log;
use crate::memory::Memory;

const IN: u32 = 0;
const OUT: u32 = 1;
const FLUSH: u32 = 4;
const GET_ID: u32 = 8;
const DISCARD: u32 = 11;
const WRITE_ZEROES: u32 = 13;

/// Longer ones are refused: no guest makes them.
const LONGEST: u64 = 64 << 20;
/// Bytes of a range in a discard.
const RANGE: usize = 16;

/// The answer's last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// It is done.
    Ok = 0,
    /// It is not, and what is there nobody knows.
    Error = 1,
    /// There is no such request.
    Unsupported = 2,
}

/// A request that can be answered.
pub struct Request {
    op: Op,
    status: GuestAddress,
}

enum Op {
    Read {
        at: u64,
        into: Vec<Stretch>,
    },
    Write {
        at: u64,
        from: Vec<Stretch>,
    },
    Flush,
    Id {
        into: Vec<Stretch>,
    },
    Zeros(Vec<Zeros>),
    /// Nothing of it is carried out.
    Refused(Status),
}

#[derive(Clone, Copy)]
struct Zeros {
    at: u64,
    len: u64,
    may_unmap: bool,
}

/// Whether a request may wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Not for a disk: whoever asks serves other requests too.
    None,
    /// As long as it takes.
    Any,
}

/// A request was to be carried out without waiting, and must wait.
pub struct MustWait;

thread_local! {
    /// What the guest writes, copied out of its memory.
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Request {
    /// The request that begins at a head of a table of `size` descriptors.
    ///
    /// # Errors
    /// The rules of the ring are broken, or it has no place for an answer.
    pub fn at<L: Log>(
        head: u16,
        (table, size): (u64, u16),
        memory: &Memory,
        disk: &Disk<L>,
    ) -> Result<Self, Malformed> {
        let mut chain = Chain::of(memory, table, size, head)?;
        let status = chain.take_status().ok_or(Malformed("a request without a place for its status"))?;
        let mut head = [0; 16];
        if !chain.take_first(memory, &mut head) {
            return Ok(Self { op: Op::Refused(Status::Error), status });
        }
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let sector = u64::from(word(8)) | u64::from(word(12)) << 32;
        Ok(Self { op: Self::op(word(0), sector, chain, memory, disk), status })
    }

    fn op<L: Log>(kind: u32, sector: u64, mut chain: Chain, memory: &Memory, disk: &Disk<L>) -> Op {
        let place = |stretches: &[Stretch]| {
            let len = length(stretches);
            within(disk, sector, len).filter(|_| len <= LONGEST && len.is_multiple_of(SECTOR))
        };
        let is_read_only = disk.image.is_read_only();
        match kind {
            IN => match place(&chain.wanted) {
                Some(at) => Op::Read { at, into: chain.wanted },
                None => Op::Refused(Status::Error),
            },
            OUT | DISCARD | WRITE_ZEROES if is_read_only => Op::Refused(Status::Error),
            OUT => match place(&chain.given) {
                Some(at) => Op::Write { at, from: chain.given },
                None => Op::Refused(Status::Error),
            },
            FLUSH => Op::Flush,
            GET_ID => Op::Id { into: chain.wanted },
            DISCARD | WRITE_ZEROES => ranges(kind, &mut chain, memory, disk),
            _ => Op::Refused(Status::Unsupported),
        }
    }

    /// True if it waits for what was written.
    pub fn is_flush(&self) -> bool {
        matches!(self.op, Op::Flush)
    }

    /// How many bytes it moves, for the limits. `None`: it is no read or write.
    pub fn moves(&self) -> Option<u64> {
        match &self.op {
            Op::Read { into: stretches, .. } | Op::Write { from: stretches, .. } => Some(length(stretches)),
            _ => None,
        }
    }

    /// Carries it out, and says how many bytes of the guest's memory were written.
    ///
    /// # Errors
    /// Without patience: nothing was done, and it must wait.
    pub fn carry_out<L: Log>(
        &self,
        memory: &Memory,
        disk: &Disk<L>,
        patience: Patience,
    ) -> Result<u32, MustWait> {
        let (status, written) = match &self.op {
            Op::Read { at, into } => match read(disk, memory, *at, into, patience) {
                Err(Errno::AGAIN) if patience == Patience::None => return Err(MustWait),
                done => (status_of(done), length(into)),
            },
            Op::Write { .. } | Op::Zeros(_) if patience == Patience::None && waits(disk) => {
                return Err(MustWait);
            }
            Op::Flush if patience == Patience::None && !disk.image.syncs_at_once() => return Err(MustWait),
            Op::Write { at, from } => (status_of(write(disk, memory, *at, from)), 0),
            Op::Zeros(ranges) => (status_of(zeros(disk, ranges)), 0),
            Op::Flush => (status_of(disk.image.sync()), 0),
            Op::Id { into } => id(disk, memory, into),
            Op::Refused(status) => (*status, 0),
        };
        self.count(disk);
        // Its place was there when the request was parsed.
        let _ = memory.write_obj(status as u8, self.status);
        Ok(u32::try_from(written + 1).unwrap_or(u32::MAX))
    }
}

impl Request {
    fn count<L>(&self, disk: &Disk<L>) {
        match &self.op {
            Op::Read { into, .. } => disk.counts.read(length(into)),
            Op::Write { from, .. } => disk.counts.wrote(length(from)),
            Op::Flush => disk.counts.flushed(),
            Op::Zeros(_) => disk.counts.discarded(),
            Op::Id { .. } | Op::Refused(_) => {}
        }
    }
}

/// True if a write waits: it is to be durable when it is answered, or a copy of the image is being taken.
fn waits<L: Log>(disk: &Disk<L>) -> bool {
    disk.image.must_wait() || !disk.has_cache.load(Relaxed) && !disk.image.syncs_at_once()
}

/// Where the sectors are, if all are on the disk.
fn within<L: Log>(disk: &Disk<L>, sector: u64, len: u64) -> Option<u64> {
    let at = sector.checked_mul(SECTOR)?;
    at.checked_add(len).filter(|end| *end <= disk.image.bytes()).map(|_| at)
}

fn status_of(done: Result<(), Errno>) -> Status {
    if done.is_ok() { Status::Ok } else { Status::Error }
}

fn read<L: Log>(
    disk: &Disk<L>,
    memory: &Memory,
    at: u64,
    into: &[Stretch],
    patience: Patience,
) -> Result<(), Errno> {
    let slices = slices(memory, into).ok_or(Errno::FAULT)?;
    disk.image.read(at, slices, patience == Patience::None)
}

fn write<L: Log>(disk: &Disk<L>, memory: &Memory, at: u64, from: &[Stretch]) -> Result<(), Errno> {
    let slices = slices(memory, from).ok_or(Errno::FAULT)?;
    let mut room = ROOM.take();
    room.resize(length(from) as usize, 0);
    let mut rest = &mut room[..];
    for slice in slices {
        let (now, later) = rest.split_at_mut(slice.len());
        slice.copy_to(now);
        rest = later;
    }
    let done = disk.image.write(at, &room);
    // What is seldom so long is not kept.
    if room.capacity() <= 4 << 20 {
        ROOM.set(room);
    }
    done?;
    durable(disk)
}

fn zeros<L: Log>(disk: &Disk<L>, ranges: &[Zeros]) -> Result<(), Errno> {
    ranges.iter().try_for_each(|range| disk.image.write_zeros(range.at, range.len, range.may_unmap))?;
    durable(disk)
}

/// Without a cache that the guest flushes, each write is durable.
fn durable<L: Log>(disk: &Disk<L>) -> Result<(), Errno> {
    if disk.has_cache.load(Relaxed) { Ok(()) } else { disk.image.sync() }
}

fn id<L: Log>(disk: &Disk<L>, memory: &Memory, into: &[Stretch]) -> (Status, u64) {
    let serial = disk.serial();
    let Some(slices) = slices(memory, into) else { return (Status::Error, 0) };
    let mut rest = &serial[..];
    for slice in slices {
        let n = rest.len().min(slice.len());
        slice.copy_from(&rest[..n]);
        rest = &rest[n..];
    }
    (Status::Ok, (SERIAL - rest.len()) as u64)
}

/// The ranges of a discard or a write of zeros.
fn ranges<L: Log>(kind: u32, chain: &mut Chain, memory: &Memory, disk: &Disk<L>) -> Op {
    let bytes = length(&chain.given);
    if bytes == 0 || !bytes.is_multiple_of(RANGE as u64) || bytes / RANGE as u64 > u64::from(RANGES) {
        return Op::Refused(Status::Error);
    }
    let mut all = Vec::new();
    let mut range = [0; RANGE];
    while !chain.given.is_empty() && chain.take_first(memory, &mut range) {
        let sector = u64::from_le_bytes([
            range[0], range[1], range[2], range[3], range[4], range[5], range[6], range[7],
        ]);
        let sectors = u32::from_le_bytes([range[8], range[9], range[10], range[11]]);
        let flags = u32::from_le_bytes([range[12], range[13], range[14], range[15]]);
        // Unmap goes with zeros alone, and no other flag is known (5.2.6.2).
        let known = if kind == WRITE_ZEROES { 1 } else { 0 };
        if flags & !known != 0 {
            return Op::Refused(Status::Unsupported);
        }
        let len = u64::from(sectors) * SECTOR;
        let Some(at) = within(disk, sector, len).filter(|_| len <= LONGEST_ZEROS) else {
            return Op::Refused(Status::Error);
        };
        if len > 0 {
            all.push(Zeros { at, len, may_unmap: kind == DISCARD || flags & 1 != 0 });
        }
    }
    Op::Zeros(all)
}
