//! Files that this process writes by asynchronous requests (libaio, io_uring, POSIX aio): such a write ends at
//! a time of its own, so its file stays out of the log until the process ends.
//!
//! Input: the descriptor of a request that is about to be submitted. Invariant: when [`announce`] has returned,
//! the file behind it is held, or is noted and will be held should this process ever find it managed. Other
//! files are not touched.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst, fence};

use crate::classify::{self, Intent, Kind, find, hold_for_life};
use crate::fdtable::{self, Entry, State, mark};
use crate::session;
use crate::sys::{self, Stat};

/// `RWF_DSYNC` of a request.
const RWF_DSYNC: u32 = 2;
/// `RWF_SYNC` of a request.
const RWF_SYNC: u32 = 4;

/// Files noted, by a hash of device and inode. Two files on one bit: the other is held for nothing, which is
/// safe. A bit is never cleared. Untouched pages of it cost no memory.
static NOTED: [AtomicU64; BITS / 64] = [const { AtomicU64::new(0) }; BITS / 64];
const BITS: usize = 1 << 19;
/// How many bits are set: none in most processes.
static ANY: AtomicU32 = AtomicU32::new(0);

/// A write through `fd` is about to be submitted: the flags (`RWF_…`) that it must carry, because its
/// descriptor lost O_DSYNC or O_SYNC when the file was managed.
pub fn announce(fd: c_int) -> u32 {
    if session::is_off() {
        return 0;
    }
    if !matches!(classify::of(fd, Intent::Hold), Kind::Managed(_)) {
        note(fd);
    }
    hold_for_life(fd);
    let entry = fdtable::get(fd);
    match (entry.has(mark::SYNC), entry.has(mark::DSYNC)) {
        (true, _) => RWF_SYNC | RWF_DSYNC,
        (false, true) => RWF_DSYNC,
        (false, false) => 0,
    }
}

/// Notes the file of a descriptor that is not managed now.
fn note(fd: c_int) {
    let entry = fdtable::get(fd);
    if entry.state() == State::Unmanaged && entry.has(mark::HELD) {
        return;
    }
    let Some(stat) = sys::fstat(fd).ok().filter(|stat| stat.regular) else { return };
    let (word, bit) = place(&stat);
    if word.fetch_or(bit, SeqCst) & bit == 0 {
        ANY.fetch_add(1, SeqCst);
    }
    // Here the note, then the question whether the file is managed; in `classify` the file is managed, then the
    // question whether it is noted. One of the two sees the other.
    fence(SeqCst);
    let registered = session::joined().and_then(|engine| find(engine, &stat)).is_some();
    let entry = fdtable::get(fd);
    if registered {
        fdtable::set(fd, Entry::other(State::Unknown, entry.marks()));
    } else if entry.state() == State::Unmanaged {
        fdtable::set(fd, entry.with(mark::HELD, true));
    }
}

/// True if the file may have been written by a request of this process while it was not managed.
pub fn is_noted(stat: &Stat) -> bool {
    fence(SeqCst);
    if ANY.load(Relaxed) == 0 {
        return false;
    }
    let (word, bit) = place(stat);
    word.load(Relaxed) & bit != 0
}

/// A file's bit.
fn place(stat: &Stat) -> (&'static AtomicU64, u64) {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let hash = (stat.ino ^ stat.dev.rotate_left(32)).wrapping_mul(GOLDEN);
    let at = (hash >> 32) as usize % BITS;
    (&NOTED[at / 64], 1 << (at % 64))
}
