//! This process's connection to the log: made at first need, at most once, never taken back.
//!
//! Lock-free, because the first need may arise in a signal handler or in two threads at once: each attempt
//! builds an engine of its own, one is published, the others are dropped.

use core::ptr;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::SeqCst, fence,
};

use seawall_core::Engine;

use crate::cached;
use crate::client::{self, Failure};
use crate::sys::{self, raw};

static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(ptr::null_mut());
/// No socket, or the daemon does not want us: everything passes through for the life of the process.
static OFF: AtomicBool = AtomicBool::new(false);
/// Something passed through unseen while the daemon could not be asked.
static MISSED: AtomicBool = AtomicBool::new(false);
/// No request is made before this moment (CLOCK_MONOTONIC): a hung daemon costs one timeout a second.
static NOT_BEFORE: AtomicU64 = AtomicU64::new(0);
/// What the program before an exec may have left locked was looked for.
static BURIED: AtomicBool = AtomicBool::new(false);
const PAUSE_NS: u64 = 1_000_000_000;
/// 0 if the daemon speaks. Of one that stands still: when it is pinged again (CLOCK_MONOTONIC).
static SILENT_UNTIL: AtomicU64 = AtomicU64::new(0);

/// How the daemon is known to be.
pub enum Hearing {
    /// Nothing else is known.
    Speaks,
    /// It stands still: it is not asked.
    Silent,
    /// It stood still. This thread finds out whether it does now.
    Probe,
}

/// True if everything passes through: the first question of every hook.
#[inline]
pub fn is_off() -> bool {
    OFF.load(Relaxed)
}

/// The engine if there is one already.
#[inline]
pub fn joined() -> Option<&'static Engine> {
    // SAFETY: a published engine is never moved or freed.
    unsafe { ENGINE.load(Acquire).as_ref() }
}

/// The engine, joining the log if need be.
#[inline]
pub fn engine() -> Option<&'static Engine> {
    joined().or_else(|| if is_off() { None } else { join() })
}

/// True if a write may have passed through while the daemon did not answer.
pub fn missed() -> bool {
    MISSED.load(Relaxed)
}

/// True unless a request failed a moment ago.
pub fn may_ask() -> bool {
    NOT_BEFORE.load(Relaxed) == 0 || sys::now_ns(libc::CLOCK_MONOTONIC) >= NOT_BEFORE.load(Relaxed)
}

/// Notes that the daemon did not answer.
pub fn unanswered() {
    MISSED.store(true, Relaxed);
    // Who did not ask puts the next question off for nobody: there may be more of these all the time.
    if may_ask() {
        NOT_BEFORE.store(sys::now_ns(libc::CLOCK_MONOTONIC) + PAUSE_NS, Relaxed);
    }
}

/// Whether the daemon is to be asked anything.
pub fn hearing() -> Hearing {
    let until = SILENT_UNTIL.load(Relaxed);
    if until == 0 {
        return Hearing::Speaks;
    }
    let now = sys::now_ns(libc::CLOCK_MONOTONIC);
    if now < until {
        return Hearing::Silent;
    }
    match SILENT_UNTIL.compare_exchange(until, now + PAUSE_NS, Relaxed, Relaxed) {
        Ok(_) => Hearing::Probe,
        Err(_) => Hearing::Silent,
    }
}

/// True while the daemon stands still.
pub fn is_silent() -> bool {
    SILENT_UNTIL.load(Relaxed) != 0
}

/// Notes whether the daemon is there, or stands still.
pub fn heard(is_there: bool) {
    let until = if is_there { 0 } else { sys::now_ns(libc::CLOCK_MONOTONIC) + PAUSE_NS };
    SILENT_UNTIL.store(until, Relaxed);
}

/// Everything passes through from now on. True if it did before.
fn turn_off() -> bool {
    cached::none();
    OFF.swap(true, Relaxed)
}

#[cold]
fn join() -> Option<&'static Engine> {
    if !may_ask() {
        return miss();
    }
    match client::hello() {
        Ok(engine) => publish(engine),
        Err(Failure::NoSocket) => {
            turn_off();
            None
        }
        Err(Failure::Refused(why)) => {
            if !turn_off() {
                sys::say(&["not active in this process: ", why]);
            }
            None
        }
        Err(Failure::NoAnswer) => {
            if !MISSED.load(Relaxed) {
                sys::say(&["the daemon does not answer; this process uses the disk until it does"]);
            }
            unanswered();
            miss()
        }
    }
}

/// What is about to be done passes through unseen; unless another thread has joined meanwhile, which either is seen
/// here, or sees what is missed.
fn miss() -> Option<&'static Engine> {
    MISSED.store(true, Relaxed);
    fence(SeqCst);
    joined()
}

/// Moves the engine into a page of its own and publishes it, unless another thread was quicker.
fn publish(engine: Engine) -> Option<&'static Engine> {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let size = size_of::<Engine>();
    let at = raw!(SYS_mmap, 0, size, prot, flags, -1isize, 0).ok()? as *mut Engine;
    if !BURIED.swap(true, AcqRel)
        && let Some(journal) = engine.pool().journal()
    {
        journal.bury_former_self(engine.pool(), || joined().is_none());
    }
    // SAFETY: fresh memory of the right size, aligned to a page, ours alone until published.
    unsafe { at.write(engine) };
    pin_what_is_missed();
    if ENGINE.compare_exchange(ptr::null_mut(), at, AcqRel, Acquire).is_err() {
        // SAFETY: written above and not published.
        unsafe { at.drop_in_place() };
        let _ = raw!(SYS_munmap, at, size);
    }
    pin_what_is_missed();
    joined()
}

/// Writes that began while nobody answered may be under way, through whatever is open: the block cache must not serve
/// these files. Before the log counts this process among those who announce their writes, and once more for who missed
/// that.
fn pin_what_is_missed() {
    fence(SeqCst);
    if missed() {
        cached::pin_open();
    }
}

/// To be called by our constructor: without a socket there is nothing to do in this process, ever.
pub fn start() {
    let mut room = [0; crate::environment::SOCKET_PATH_MAX];
    if crate::environment::socket(&mut room).is_none() {
        turn_off();
    }
}
