//! io_uring: submissions are read before liburing makes them, and hold the files that they write. Where that
//! cannot be done, every managed file that the process has open for writing, now or later, stays out of the log
//! until the process ends: a ring by `syscall`, one with a kernel thread (SQPOLL), registered files, requests
//! whose descriptor is looked up later, a liburing that looks otherwise than we know.
//!
//! Under the policy `atomic` there is no ring: [`are_refused`].

use seawall_wire::shm::Policy;

use crate::{classify, session, sys, unseen};

mod submission;

pub use submission::{Ring, can_be_seen};

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
    if !session::is_off() && !unseen::note_all() {
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
    if session::is_off() || unseen::may_be_any() {
        return;
    }
    // SAFETY: the caller's; a ring that is not as known has made all of them `unseen`.
    if !unsafe { (*ring).announce() } {
        hide();
    }
}

/// Holds whatever is open.
pub fn hold_all() {
    sys::each_open(classify::hold_for_life);
}
