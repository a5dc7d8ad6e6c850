//! Words of the header that change: whether the cache is on, and the counts that everybody shares.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use core::sync::atomic::{AtomicU32, AtomicU64};

use super::Cache;
use crate::set::WAYS;

const STATE: usize = 128;
/// Beside it: a reader that looks at the one looks at the other.
const WATCHER: usize = STATE + 8;
const NEXT_INCARNATION: usize = 192;
const FAILURES: usize = 256;
#[cfg(feature = "std")]
pub(super) const CLEAN: usize = 320;
#[cfg(feature = "std")]
pub(super) const BOOT: usize = 328;
const ADMITTED: usize = 384;
/// Of a zone whose blocks lie on a disk.
const DISK_ERRORS: usize = 448;
/// A line for those who bring blocks there.
const BELL: usize = 512;
const IS_SPENT: usize = BELL + 4;
const ALLOWANCE: usize = BELL + 8;
const ALLOWED_AT: usize = BELL + 16;
/// How many places a set has; 0: all that it can have.
const WAYS_NOW: usize = 640;
/// Blocks that were not brought there.
const DROPPED: usize = 576;
const OVER_BUDGET: usize = DROPPED + 8;

/// The part of the watcher's word that is a thread's id (futex(2), FUTEX_TID_MASK).
const THREAD: u32 = 0x3fff_ffff;

/// Blocks whose checksum may fail before the cache is switched off; and of a disk, reads and writes.
pub const FAILURES_MAX: u64 = 8;

/// Why a cache is off. Once off it stays off, for all processes, until the zone is made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Off {
    /// Checksums failed again and again.
    Failures,
    /// Incarnations are used up: four billion changes of files.
    Exhausted,
    /// Somebody asked for it.
    Asked,
    /// Its disk failed again and again.
    Disk,
}

impl Off {
    const fn number(self) -> u64 {
        match self {
            Self::Failures => 1,
            Self::Exhausted => 2,
            Self::Asked => 3,
            Self::Disk => 4,
        }
    }
}

impl Cache {
    /// Why it is off; `None` while it is on.
    #[inline]
    pub fn off(&self) -> Option<Off> {
        match self.word(STATE).load(Acquire) {
            0 => None,
            1 => Some(Off::Failures),
            2 => Some(Off::Exhausted),
            4 => Some(Off::Disk),
            _ => Some(Off::Asked),
        }
    }

    /// Switches it off. The first reason stays. Writes go on being announced: that costs little, and nobody has to
    /// know who saw what.
    pub fn switch_off(&self, why: Off) {
        let _ = self.word(STATE).compare_exchange(0, why.number(), SeqCst, Relaxed);
        self.flush(STATE, 8);
        self.settle();
    }

    /// The watcher's word. The process that watches for those that write without a word has its thread's id in it, and has the
    /// kernel wipe that when the thread dies (set_robust_list(2)): before any file that it has open is closed, so before
    /// an open that waits for its answer may go on.
    pub fn watcher(&self) -> &AtomicU32 {
        self.region.u32(WATCHER)
    }

    /// True while somebody watches.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.watcher().load(Acquire) & THREAD != 0
    }

    /// True if blocks are served and filled at all: it is on, and somebody watches.
    #[inline]
    pub(super) fn is_serving(&self) -> bool {
        self.word(STATE).load(Acquire) == 0 && self.is_watched()
    }

    /// Blocks that were admitted since the zone was made.
    pub fn admitted(&self) -> u64 {
        self.word(ADMITTED).load(Relaxed)
    }

    pub(super) fn count_admitted(&self) {
        self.word(ADMITTED).fetch_add(1, Relaxed);
    }

    /// Blocks whose checksum failed.
    pub fn failures(&self) -> u64 {
        self.word(FAILURES).load(Relaxed)
    }

    pub(super) fn count_failure(&self) {
        if self.word(FAILURES).fetch_add(1, Relaxed) + 1 >= FAILURES_MAX {
            self.switch_off(Off::Failures);
        }
    }

    /// Reads and writes that its disk refused.
    pub fn disk_errors(&self) -> u64 {
        self.word(DISK_ERRORS).load(Relaxed)
    }

    #[cold]
    pub(super) fn count_disk_error(&self) {
        if self.word(DISK_ERRORS).fetch_add(1, Relaxed) + 1 >= FAILURES_MAX {
            self.switch_off(Off::Disk);
        }
    }

    /// Blocks that were not brought to the disk since the zone was made: too many were on their way.
    pub fn dropped(&self) -> u64 {
        self.word(DROPPED).load(Relaxed)
    }

    pub(super) fn count_dropped(&self) {
        self.word(DROPPED).fetch_add(1, Relaxed);
    }

    /// Blocks that were not brought to the disk since the zone was made: as many bytes had been as may be.
    pub fn over_budget(&self) -> u64 {
        self.word(OVER_BUDGET).load(Relaxed)
    }

    pub(super) fn count_over_budget(&self) {
        self.word(OVER_BUDGET).fetch_add(1, Relaxed);
    }

    /// True while nothing may be brought to the disk: as many bytes were as may be.
    pub fn is_spent(&self) -> bool {
        self.region.u32(IS_SPENT).load(Relaxed) != 0
    }

    /// Nothing may be brought to the disk for now, or something may again. The daemon's alone.
    pub fn set_spent(&self, is_spent: bool) {
        self.region.u32(IS_SPENT).store(u32::from(is_spent), Relaxed);
    }

    /// Bytes that may be brought to the disk at once, and as of when that is, in seconds since the epoch; zeros at first.
    /// The daemon's alone: kept here, so that it outlives it.
    pub fn allowance(&self) -> (u64, u64) {
        (self.word(ALLOWANCE).load(Relaxed), self.word(ALLOWED_AT).load(Relaxed))
    }

    /// Keeps them.
    pub fn set_allowance(&self, bytes: u64, at: u64) {
        self.word(ALLOWANCE).store(bytes, Relaxed);
        self.word(ALLOWED_AT).store(at, Relaxed);
    }

    /// How many places a set has now.
    #[inline]
    pub fn ways(&self) -> u32 {
        match self.region.u32(WAYS_NOW).load(SeqCst) {
            0 => WAYS as u32,
            ways => ways.min(WAYS as u32),
        }
    }

    /// The same as bits.
    #[inline]
    pub(super) fn places(&self) -> u16 {
        u16::MAX >> (WAYS as u32 - self.ways())
    }

    /// From now on a set has so many places, durably.
    #[cfg(feature = "std")]
    pub(super) fn set_ways(&self, ways: u32) {
        self.region.u32(WAYS_NOW).store(ways.clamp(1, WAYS as u32), SeqCst);
        self.flush(WAYS_NOW, 4);
        self.settle();
    }

    /// 1 while whoever brings blocks to the disk sleeps, and is to be woken.
    pub(super) fn bell(&self) -> &AtomicU32 {
        self.region.u32(BELL)
    }

    /// An incarnation that no file ever had, durable before it is used; 0, which no file can be served with, if
    /// there is none left.
    pub(super) fn new_incarnation(&self) -> u32 {
        let next = self.next_incarnation().fetch_add(1, SeqCst);
        self.flush(NEXT_INCARNATION, 8);
        self.settle();
        u32::try_from(next).unwrap_or_else(|_| {
            self.switch_off(Off::Exhausted);
            0
        })
    }

    pub(super) fn next_incarnation(&self) -> &AtomicU64 {
        self.word(NEXT_INCARNATION)
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        self.region.u64(at)
    }
}
