//! A daemon that is away. What must not go around the log (files under the policy `atomic`) waits for the next one: a
//! daemon that died is usually replaced within a moment. Each process waits in vain for a daemon once, so that
//! databases go on when none comes.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::Engine;

/// How long is waited, nanoseconds.
const LIMIT_NS: u64 = 5_000_000_000;
const PAUSE_NS: u64 = 50_000_000;

/// A process's patience with daemons.
#[derive(Default)]
pub struct Patience {
    /// The daemon, by its number, whose successor was waited for in vain; 0 is none.
    given_up_on: AtomicU32,
}

impl Patience {
    /// Of a process that never waited.
    pub const fn new() -> Self {
        Self { given_up_on: AtomicU32::new(0) }
    }

    /// Asks again and again what was asked without an answer, for five seconds at most. `clock` tells nanoseconds,
    /// `nap` sleeps so many.
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
