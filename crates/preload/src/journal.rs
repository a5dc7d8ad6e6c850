//! The journal of a pool on a block device: its descriptor, which stays among the application's, and what is done
//! without it.
//!
//! The number is high, so that no application's next one changes by it, and not higher than what fits the kernel's
//! usual table, which every fork copies. The application does not know it: closing it says EBADF, a range that is
//! closed leaves it out, and for a dup2(2) onto it it moves. A child inherits it; an exec closes it, and the new
//! program joins anew.
//!
//! Not prevented: a close by the application's own instructions. So before each leadership the number is looked at
//! (device and inode); where it is gone the daemon leads, and sends the descriptor once more.

use core::ffi::c_int;
use core::sync::atomic::{
    AtomicI32, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use rustix::fd::BorrowedFd;
use seawall_core::journal::Lender;
use seawall_core::{Engine, Errno};

use crate::fdtable::{self, Entry, State};
use crate::sys::{self, raw};
use crate::{client, owner, session};

const NONE: c_int = -1;
/// The kernel's tables of descriptors grow by doubling: up to here they are a page or two.
const TABLE: usize = 1024;
/// How many numbers below the table's or the limit's end it is looked for.
const BELOW: usize = 24;
/// How often a full journal is tried again, and after what time: ten seconds in all.
const ROOM_TRIES: u32 = 1000;
const ROOM_PAUSE_NS: u64 = 10_000_000;

static NUMBER: AtomicI32 = AtomicI32::new(NONE);
/// What it has to be. Written before the number is; a process has one pool for its life.
static DEVICE: AtomicU64 = AtomicU64::new(0);
static INODE: AtomicU64 = AtomicU64::new(0);
/// Its bytes if it is a file: a device has no limit.
static SIZE: AtomicU64 = AtomicU64::new(0);

/// How this process reaches the journal.
pub struct Journal;

/// The one there is.
pub static JOURNAL: Journal = Journal;

impl Lender for Journal {
    fn device(&self) -> Option<BorrowedFd<'_>> {
        let number = NUMBER.load(Acquire);
        (number >= 0 && is_it(number) && may_write()).then(|| sys::borrow(number))
    }

    fn harden(&self) -> Result<(), Errno> {
        client::harden(None)
    }

    fn retire(&self, slot: u32, generation: u32, lsn: u64) -> Result<(), Errno> {
        client::harden(Some((slot, generation, lsn)))
    }
}

fn is_it(fd: c_int) -> bool {
    sys::identity(fd) == Ok((DEVICE.load(Relaxed), INODE.load(Relaxed)))
}

/// True unless the application may write no file as long as the journal: the kernel would refuse, and send SIGXFSZ.
fn may_write() -> bool {
    sys::limit(libc::RLIMIT_FSIZE) >= SIZE.load(Relaxed)
}

/// Keeps a duplicate of the journal's descriptor, unless there is one. Without room for it the daemon leads.
pub fn keep(fd: c_int) {
    let before = NUMBER.load(Acquire);
    // A vfork child has its parent's memory, and descriptors of its own.
    if owner::in_vfork_child() || before >= 0 && is_it(before) {
        return;
    }
    let Ok(stat) = sys::fstat(fd) else { return };
    let Some(kept) = duplicate(fd) else { return };
    DEVICE.store(stat.dev, Relaxed);
    INODE.store(stat.ino, Relaxed);
    SIZE.store(stat.size, Relaxed);
    if NUMBER.compare_exchange(before, kept, AcqRel, Relaxed).is_err() {
        fdtable::reset(kept);
        sys::close(kept);
    }
}

/// A duplicate under a high number.
fn duplicate(fd: c_int) -> Option<c_int> {
    let end = TABLE.min(usize::try_from(sys::limit(libc::RLIMIT_NOFILE)).unwrap_or(TABLE));
    let made = raw!(SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, end.saturating_sub(BELOW));
    let made = made.ok()? as c_int;
    // Whatever the number was before.
    fdtable::set(made, Entry::other(State::Unmanaged, 0));
    Some(made)
}

/// True for the number of ours, which the application does not know.
#[inline]
pub fn is_kept(fd: c_int) -> bool {
    fd >= 0 && fd == NUMBER.load(Relaxed) && is_it(fd)
}

/// To be called before the kernel makes durable what the log knows nothing of (sync, syncfs, msync, an asynchronous
/// fsync): else a power cut would lead back to older records that are on the journal's device already.
///
/// # Errors
/// As for [`Engine::harden_all`].
pub fn harden_all() -> Result<(), Errno> {
    let Some(engine) = session::joined().filter(|engine| engine.pool().journal().is_some()) else {
        return Ok(());
    };
    let mut done = engine.harden_all();
    for _ in 0..ROOM_TRIES {
        if done != Err(Errno::NOSPC) {
            break;
        }
        engine.ring();
        sys::nap_ns(ROOM_PAUSE_NS);
        done = engine.harden_all();
    }
    done
}

/// The number of ours, if it lies in this range.
pub fn kept_in(first: u32, last: u32) -> Option<u32> {
    let number = NUMBER.load(Relaxed);
    let inside = u32::try_from(number).ok().filter(|n| (first..=last).contains(n))?;
    is_it(number).then_some(inside)
}

/// To be called before the application puts something else onto this number: ours moves.
#[inline]
pub fn make_way(fd: c_int) {
    if is_kept(fd) {
        move_away(fd);
    }
}

#[cold]
fn move_away(fd: c_int) {
    // In a vfork child the number is its parent's as well, and stays that.
    if owner::in_vfork_child() {
        return;
    }
    let elsewhere = duplicate(fd).unwrap_or(NONE);
    NUMBER.store(elsewhere, Release);
    // Another thread may be about to write by the old number.
    while session::joined().is_some_and(Engine::leads_here) {
        let _ = raw!(SYS_sched_yield);
    }
    sys::close(fd);
}
