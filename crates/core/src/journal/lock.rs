//! The journal's lock: who leads. It outlives no one, and nobody waits for a dead leader.
//!
//! ```text
//!           compare-and-swap                    store 0, bell, wake
//!   free ──────────────────────▶ a leader ─────────────────────────▶ free
//!                                   │ its process is dead
//!                                   ▼
//!                                a waiter that noticed
//! ```
//!
//! What may not be trusted after a take-over: table and buffer of the batch. Everything else on the desk is
//! committed by single stores.
//!
//! A *stopped* leader is waited for: it may be inside its device write, and a write that came late could land on
//! a later batch.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use rustix::process::{Pid, getpid, test_kill_process};
use rustix::thread::{futex, gettid};
use seawall_media::{Region, sim};
use seawall_wire::desk::Desk;

use super::Journal;
use crate::Errno;

const SPINS: u32 = 128;
const NAP: futex::Timespec = futex::Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// Leadership, until dropped.
pub(super) struct Lead<'a> {
    desk: Desk<'a>,
}

impl Journal {
    /// Leads, waiting as long as it takes.
    ///
    /// # Errors
    /// EIO once the device failed.
    pub(super) fn lead<'a>(&self, image: &'a Region) -> Result<Lead<'a>, Errno> {
        let desk = self.desk(image);
        let mut wait = Wait::default();
        loop {
            if let Some(lead) = try_lead(desk) {
                return lead.unless_failed();
            }
            wait.nap(desk);
        }
    }
}

/// Leads if nobody does, or whoever does is dead.
pub(super) fn try_lead(desk: Desk<'_>) -> Option<Lead<'_>> {
    let holder = desk.lock().load(Acquire);
    let free = holder == 0 || is_dead(holder);
    let mine = free && desk.lock().compare_exchange(holder, me(), SeqCst, Relaxed).is_ok();
    // Lazily: one that is made gives the lock back when it is dropped.
    mine.then(|| Lead { desk })
}

impl<'a> Lead<'a> {
    /// Itself, unless the device failed: then it cannot do anything.
    pub(super) fn unless_failed(self) -> Result<Self, Errno> {
        if self.desk.failed().load(SeqCst) == 0 { Ok(self) } else { Err(Errno::IO) }
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.desk.lock().store(0, SeqCst);
        ring(self.desk);
    }
}

fn ring(desk: Desk<'_>) {
    desk.bell().fetch_add(1, SeqCst);
    if desk.sleepers().load(SeqCst) != 0 {
        desk.sleepers().store(0, SeqCst);
        // Nobody may be waiting any more; that is no error.
        let _ = futex::wake(desk.bell(), futex::Flags::empty(), i32::MAX as u32);
    }
}

/// One thread's wait for a leader.
#[derive(Default)]
pub(super) struct Wait {
    spins: u32,
}

impl Wait {
    /// Waits a little, at most until a leader is through. The caller looks again.
    pub(super) fn nap(&mut self, desk: Desk<'_>) {
        if sim::waits() {
            return;
        }
        self.spins += 1;
        if self.spins <= SPINS {
            core::hint::spin_loop();
            return;
        }
        let bell = desk.bell().load(SeqCst);
        desk.sleepers().store(1, SeqCst);
        if desk.lock().load(SeqCst) != 0 {
            let _ = futex::wait(desk.bell(), futex::Flags::empty(), bell, Some(&NAP));
        }
    }
}

/// Process and thread in a word; never 0.
fn me() -> u64 {
    let (pid, tid) = match sim::process() {
        Some(simulated) => (simulated, simulated),
        None => (getpid().as_raw_pid() as u32, gettid().as_raw_pid() as u32),
    };
    u64::from(pid) << 32 | u64::from(tid)
}

fn is_dead(holder: u64) -> bool {
    let pid = (holder >> 32) as i32;
    if let Some(dead) = sim::is_dead(pid as u32) {
        return dead;
    }
    Pid::from_raw(pid).is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// Frees the lock if a process that is known to be dead holds it: one that nobody waited for still has its id.
pub fn release_dead(desk: Desk<'_>, pid: u32) {
    let holder = desk.lock().load(Acquire);
    if (holder >> 32) as u32 == pid && desk.lock().compare_exchange(holder, 0, Release, Relaxed).is_ok() {
        ring(desk);
    }
}
