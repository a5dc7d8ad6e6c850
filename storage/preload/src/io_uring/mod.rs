//! io_uring: submissions are read before liburing makes them, and hold the files that they write. Where that
//! cannot be done, every managed file that the process has open for writing, now or later, stays out of the log
//! until the process ends: one made by `syscall`, one with a kernel thread (SQPOLL), registered files, requests
//! whose descriptor is looked up later, a liburing that looks otherwise than we know.
//!
//! Under the policy `atomic` there is none: [`are_refused`].

use seawall_wire::shm::Policy;

use crate::{classify, session, sys, unseen};

mod submission;

pub use submission::{IoUring, can_be_seen};

/// True if this process gets neither an io_uring nor a context of libaio's: a root's policy is atomic, so that no write
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
    if !session::is_off() && !unseen::note_all() {
        hold_all();
    }
}

/// To be called when liburing has set an io_uring up, before the application has it.
///
/// # Safety
/// That of a successful set-up.
pub unsafe fn made(uring: *const IoUring) {
    // SAFETY: the caller's.
    if !session::is_off() && !unsafe { uring.as_ref().is_some_and(|uring| uring.is_as_known()) } {
        hide();
    }
}

/// To be called before a submission.
///
/// # Safety
/// The one that liburing is about to be given.
#[inline]
pub unsafe fn submitting(uring: *const IoUring) {
    if session::is_off() || unseen::may_be_any() {
        return;
    }
    // SAFETY: the caller's; one that is not as known has made all of them `unseen`.
    if !unsafe { (*uring).announce() } {
        hide();
    }
}

/// Holds whatever is open.
pub fn hold_all() {
    sys::each_open(classify::hold_for_life);
}
