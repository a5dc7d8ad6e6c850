//! What a process knows of its daemon: whether it is stopped, and whether it failed to answer a moment ago.
//!
//! Lock-free: a signal handler may ask.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The pause between two questions to a daemon that does not answer.
const PAUSE_NS: u64 = 1_000_000_000;

/// What is known.
pub struct Line {
    /// No request is made before this moment, or 0: a hung daemon costs one timeout a second.
    not_before: AtomicU64,
    /// 0 if the daemon speaks; otherwise when to ping it again.
    silent_until: AtomicU64,
}

/// What is known about the daemon's ability to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearing {
    /// Nothing else is known.
    Speaks,
    /// It is stopped: it is not asked.
    Silent,
    /// It was stopped. This thread finds out whether it still does.
    Probe,
}

impl Line {
    pub const fn new() -> Self {
        Self { not_before: AtomicU64::new(0), silent_until: AtomicU64::new(0) }
    }

    /// True unless a request failed a moment ago.
    pub fn may_ask(&self, now_ns: impl FnOnce() -> u64) -> bool {
        let not_before = self.not_before.load(Relaxed);
        not_before == 0 || now_ns() >= not_before
    }

    /// Notes that the daemon did not answer.
    pub fn unanswered(&self, now_ns: u64) {
        // A thread that did not ask must not put the next question off: such threads may keep coming.
        if self.may_ask(|| now_ns) {
            self.not_before.store(now_ns + PAUSE_NS, Relaxed);
        }
    }

    /// Whether to ask the daemon anything.
    pub fn hearing(&self, now_ns: u64) -> Hearing {
        let until = self.silent_until.load(Relaxed);
        if until == 0 {
            return Hearing::Speaks;
        }
        if now_ns < until {
            return Hearing::Silent;
        }
        match self.silent_until.compare_exchange(until, now_ns + PAUSE_NS, Relaxed, Relaxed) {
            Ok(_) => Hearing::Probe,
            Err(_) => Hearing::Silent,
        }
    }

    /// True while the daemon is stopped.
    pub fn is_silent(&self) -> bool {
        self.silent_until.load(Relaxed) != 0
    }

    /// Notes whether the daemon is there, or is stopped.
    pub fn heard(&self, is_there: bool, now_ns: u64) {
        self.silent_until.store(if is_there { 0 } else { now_ns + PAUSE_NS }, Relaxed);
    }
}
