//! Descriptors of ours that stay among the application's: the journal's, that of its mirror, connections to keepers, and that
//! of a block cache on a disk.
//!
//! Their numbers are high, so that no application's next one changes by them, and not higher than what fits the kernel's
//! usual table, which every fork copies. The application does not know them: closing one says EBADF, a range that is closed
//! leaves them out, and for a dup2(2) onto one it moves. A child inherits them; an exec closes them, and the new program is
//! given them anew.
//!
//! Not prevented: a close by the application's own instructions. So before each use the number is looked at (device and
//! inode); where it is gone its user does without.

use core::ffi::c_int;
use core::sync::atomic::{
    AtomicI32, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use seawall_core::Engine;
use seawall_wire::keeper::KEEPERS_MAX;

use crate::fdtable::{self, FdEntry, State};
use crate::sys::{self, unsafe_call};
use crate::{log, owner};

const NONE: c_int = -1;
/// The kernel's tables of descriptors grow by doubling: up to here they are a page or two.
const TABLE: usize = 1024;
/// How many numbers below the table's or the limit's end it is looked for.
const BELOW: usize = 24;

/// A descriptor of ours.
pub struct Kept {
    number: AtomicI32,
    /// What it has to be. Written before the number is.
    device: AtomicU64,
    inode: AtomicU64,
    /// Its bytes if it is a file: a device has no limit.
    size: AtomicU64,
    /// Waits until no thread uses the number any more that it had.
    settle: fn(),
}

/// The journal's.
pub static JOURNAL: Kept = Kept::new(settle);
/// That of a mirrored journal's second copy.
pub static MIRROR: Kept = Kept::new(settle);
/// That of a block cache on a disk.
pub static BLOCKS: Kept = Kept::new(|| ());

/// Connections to the log's keepers.
pub static LINKS: [Kept; KEEPERS_MAX] = [const { Kept::new(settle) }; KEEPERS_MAX];

/// All there are.
fn all() -> impl Iterator<Item = &'static Kept> {
    [&JOURNAL, &MIRROR, &BLOCKS].into_iter().chain(&LINKS)
}

/// Waits for threads that are about to write the journal by the number that the descriptor had.
fn settle() {
    while log::joined().is_some_and(Engine::leads_here) {
        let _ = unsafe_call!(SYS_sched_yield);
    }
}

impl Kept {
    /// None yet.
    const fn new(settle: fn()) -> Self {
        Self {
            number: AtomicI32::new(NONE),
            device: AtomicU64::new(0),
            inode: AtomicU64::new(0),
            size: AtomicU64::new(0),
            settle,
        }
    }

    /// Its number, if it is still ours.
    #[inline]
    pub fn get(&self) -> Option<c_int> {
        let number = self.number.load(Acquire);
        (number >= 0 && self.is(number)).then_some(number)
    }

    /// Bytes of the file it is; 0 of a device.
    pub fn size(&self) -> u64 {
        self.size.load(Relaxed)
    }

    fn is(&self, fd: c_int) -> bool {
        sys::identity(fd) == Ok((self.device.load(Relaxed), self.inode.load(Relaxed)))
    }

    /// Keeps a duplicate of a descriptor, unless there is one. Without room for it its user does without.
    pub fn keep(&self, fd: c_int) {
        let before = self.number.load(Acquire);
        // A vfork child has its parent's memory, and descriptors of its own.
        if owner::in_vfork_child() || before >= 0 && self.is(before) {
            return;
        }
        let Some(kept) = self.take(fd) else { return };
        if self.number.compare_exchange(before, kept, AcqRel, Relaxed).is_err() {
            fdtable::reset(kept);
            sys::close(kept);
        }
    }

    /// Keeps a duplicate of another descriptor from now on, or none. One thread at a time, and not in a vfork child.
    #[cold]
    pub fn replace(&self, fd: Option<c_int>) {
        let before = Some(self.number.load(Acquire)).filter(|fd| *fd >= 0 && self.is(*fd));
        let kept = fd.and_then(|fd| self.take(fd)).unwrap_or(NONE);
        self.number.store(kept, Release);
        if let Some(before) = before {
            (self.settle)();
            fdtable::reset(before);
            sys::close(before);
        }
    }

    /// A duplicate, and what it is.
    fn take(&self, fd: c_int) -> Option<c_int> {
        let stat = sys::fstat(fd).ok()?;
        let kept = duplicate(fd)?;
        self.device.store(stat.dev, Relaxed);
        self.inode.store(stat.ino, Relaxed);
        self.size.store(stat.size, Relaxed);
        Some(kept)
    }

    /// True for its number.
    #[inline]
    fn has(&self, fd: c_int) -> bool {
        fd >= 0 && fd == self.number.load(Relaxed) && self.is(fd)
    }

    #[cold]
    fn move_away(&self, fd: c_int) {
        // In a vfork child the number is its parent's as well, and stays that.
        if owner::in_vfork_child() {
            return;
        }
        let elsewhere = duplicate(fd).unwrap_or(NONE);
        self.number.store(elsewhere, Release);
        (self.settle)();
        sys::close(fd);
    }
}

/// A duplicate under a high number.
fn duplicate(fd: c_int) -> Option<c_int> {
    let end = TABLE.min(usize::try_from(sys::limit(libc::RLIMIT_NOFILE)).unwrap_or(TABLE));
    let made = unsafe_call!(SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, end.saturating_sub(BELOW));
    let made = made.ok()? as c_int;
    // Whatever the number was before.
    fdtable::set(made, FdEntry::other(State::Unmanaged, 0));
    Some(made)
}

/// True for a number of ours, which the application does not know.
#[inline]
pub fn is_kept(fd: c_int) -> bool {
    all().any(|kept| kept.has(fd))
}

/// A number of ours that lies in this range.
pub fn kept_in(first: u32, last: u32) -> Option<u32> {
    let is_inside = |number: &u32| (first..=last).contains(number);
    let number = |kept: &Kept| u32::try_from(kept.get()?).ok().filter(is_inside);
    all().find_map(number)
}

/// To be called before the application puts something else onto this number: ours moves.
#[inline]
pub fn make_way(fd: c_int) {
    if let Some(kept) = all().find(|kept| kept.has(fd)) {
        kept.move_away(fd);
    }
}
