//! The log as this process sees it: the engine, once there is one, and whether there will be.
//!
//! State alone, for every module. Joining is done by [`session`](crate::session), on top of them.

use core::ptr;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::SeqCst, fence,
};

use seawall_core::Engine;

static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(ptr::null_mut());
/// No socket, or the daemon does not want us: everything passes through for the life of the process.
static OFF: AtomicBool = AtomicBool::new(false);
/// Something passed through unseen while the daemon could not be asked.
static MISSED: AtomicBool = AtomicBool::new(false);

/// True if everything passes through: the first question of every hook.
#[inline]
pub fn is_off() -> bool {
    OFF.load(Relaxed)
}

/// Everything passes through from now on. True if it did before.
pub fn turn_off() -> bool {
    OFF.swap(true, Relaxed)
}

/// The engine if there is one already.
#[inline]
pub fn joined() -> Option<&'static Engine> {
    // SAFETY: a published engine is never moved or freed.
    unsafe { ENGINE.load(Acquire).as_ref() }
}

/// Publishes an engine. False if another thread was quicker.
///
/// # Safety
/// It is never moved or freed once it is published.
pub unsafe fn publish(engine: *mut Engine) -> bool {
    ENGINE.compare_exchange(ptr::null_mut(), engine, AcqRel, Acquire).is_ok()
}

/// True if a write may have passed through while the daemon did not answer.
pub fn missed() -> bool {
    MISSED.load(Relaxed)
}

/// What is about to be done passes through unseen; unless another thread has joined meanwhile, which either is seen
/// here, or sees what is missed.
pub fn miss() -> Option<&'static Engine> {
    MISSED.store(true, Relaxed);
    fence(SeqCst);
    joined()
}
