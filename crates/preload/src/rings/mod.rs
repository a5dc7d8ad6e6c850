//! io_uring: submissions are read before liburing makes them, and hold the files that they write. Where that
//! cannot be done, every managed file that the process has open for writing, now or later, stays out of the log
//! until the process ends: a ring by `syscall`, one with a kernel thread (SQPOLL), registered files, requests
//! whose descriptor is looked up later, a liburing that looks otherwise than we know.
//!
//! Under the policy `atomic` there is no ring: [`are_refused`].

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};

use seawall_wire::shm::Policy;

use crate::sys::{self, raw};
use crate::{classify, session};

mod submission;

pub use submission::{Ring, can_be_seen};

static UNSEEN: AtomicBool = AtomicBool::new(false);

/// True once this process may write any of its files unseen.
#[inline]
pub fn unseen() -> bool {
    UNSEEN.load(SeqCst)
}

/// True if this process gets no ring (io_uring, or libaio's context): a root's policy is atomic, so that no write
/// of its files may go around the log. InnoDB then makes its requests by threads and pwrite(2) instead.
pub fn are_refused() -> bool {
    session::engine().is_some_and(|engine| {
        let shm = engine.shm();
        let roots = (0..shm.shape().roots).filter_map(|i| shm.root(i));
        roots.filter(|root| root.kind().is_some()).any(|root| root.policy() == Policy::Atomic)
    })
}

/// To be called before anything is submitted that cannot be seen.
pub fn hide() {
    if !session::is_off() && !UNSEEN.swap(true, SeqCst) {
        hold_all();
    }
}

/// To be called when liburing has set a ring up, before the application has it.
///
/// # Safety
/// The ring of a successful set-up.
pub unsafe fn made(ring: *const Ring) {
    // SAFETY: the caller's.
    if !session::is_off() && !unsafe { ring.as_ref().is_some_and(|ring| ring.is_as_known()) } {
        hide();
    }
}

/// To be called before a submission.
///
/// # Safety
/// The ring that liburing is about to be given.
#[inline]
pub unsafe fn submitting(ring: *const Ring) {
    if session::is_off() || unseen() {
        return;
    }
    // SAFETY: the caller's; a ring that is not as known has made `unseen` true.
    if !unsafe { (*ring).announce() } {
        hide();
    }
}

/// Holds whatever is open.
pub fn hold_all() {
    each_open(classify::hold_for_life);
}

/// Calls `each` for whatever is open, by the names in /proc/self/fd.
pub fn each_open(each: impl Fn(c_int)) {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    let Ok(dir) = sys::openat(libc::AT_FDCWD, c"/proc/self/fd", flags, 0) else {
        return (0..1024).for_each(each);
    };
    let mut chunk = [0u8; 2048];
    while let Ok(n @ 1..) = raw!(SYS_getdents64, dir, chunk.as_mut_ptr(), chunk.len()) {
        names(&chunk[..n]).filter_map(number).filter(|fd| *fd != dir).for_each(&each);
    }
    sys::close(dir);
}

/// The names in a buffer of `struct linux_dirent64`: inode 8, offset 8, record length 2, type 1, name.
fn names(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    const NAME_AT: usize = 19;
    core::iter::from_fn(move || {
        let len = usize::from(u16::from_ne_bytes([*rest.get(16)?, *rest.get(17)?]));
        let (record, after) = rest.split_at_checked(len)?;
        rest = after;
        record.get(NAME_AT..)?.split(|b| *b == 0).next()
    })
}

fn number(name: &[u8]) -> Option<c_int> {
    core::str::from_utf8(name).ok()?.parse().ok()
}
