//! What to do while the daemon is away. Files that must not go around the log (under the policy `atomic`) wait for the
//! next daemon: a daemon that died is usually replaced within a moment. Each process waits in vain for a daemon only
//! once, so that databases go on when none comes.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::Engine;

/// How long to wait, in nanoseconds.
const LIMIT_NS: u64 = 5_000_000_000;
const PAUSE_NS: u64 = 50_000_000;

/// A process's patience with daemons.
#[derive(Default)]
pub struct Patience {
    /// The number of the daemon whose successor this process waited for in vain; 0 is none.
    given_up_on: AtomicU32,
}

impl Patience {
    /// The patience of a process that has not waited yet.
    pub const fn new() -> Self {
        Self { given_up_on: AtomicU32::new(0) }
    }

    /// Repeats a question that got no answer, for five seconds at most. `clock` tells nanoseconds, `nap` sleeps that
    /// many.
    pub fn insist<R>(
        &self,
        engine: &Engine,
        clock: impl Fn() -> u64,
        nap: impl Fn(u64),
        mut ask: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        let daemon = engine.shm().header().daemon_epoch().load(Relaxed);
        let end = clock().saturating_add(LIMIT_NS);
        while self.given_up_on.load(Relaxed) != daemon {
            nap(PAUSE_NS);
            if let Some(answer) = ask() {
                return Some(answer);
            }
            if clock() >= end {
                self.given_up_on.store(daemon, Relaxed);
            }
        }
        None
    }
}
