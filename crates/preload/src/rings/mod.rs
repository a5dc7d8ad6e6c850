//! io_uring: submissions are read before liburing makes them, and hold the files that they write. Where that
//! cannot be done, every managed file that the process has open for writing, now or later, stays out of the log
//! until the process ends: a ring by `syscall`, one with a kernel thread (SQPOLL), registered files, requests
//! whose descriptor is looked up later, a liburing that looks otherwise than we know.
//!
//! Under the policy `atomic` there is no ring: [`are_refused`].

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};

use seawall_wire::shm::Policy;

use crate::sys::{self, entries};
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
    entries::any_entry(dir, |name| {
        number(name.to_bytes()).filter(|fd| *fd != dir).into_iter().for_each(&each);
        false
    });
    sys::close(dir);
}

fn number(name: &[u8]) -> Option<c_int> {
    core::str::from_utf8(name).ok()?.parse().ok()
}
