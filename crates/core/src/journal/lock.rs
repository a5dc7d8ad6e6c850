//! The journal's lock: who leads. It outlives no one, and nobody waits for a dead leader.
//!
//! ```text
//!           compare-and-swap                    store 0, bell, wake
//!   free ──────────────────────▶ a leader ─────────────────────────▶ free
//!                                   │ it is dead
//!                                   ▼
//!                                a waiter that noticed
//! ```
//!
//! What may not be trusted after a take-over: table and buffer of the batch. Everything else on the desk is
//! committed by single stores.
//!
//! No signal handler runs while its thread leads: its sync could neither lead nor wait for itself.
//!
//! A *stopped* leader is waited for: it may be inside its device write, and a write that came late could land on
//! a later batch.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use rustix::process::getpid;
use rustix::thread::{futex, gettid};
use seawall_media::signals::{HeldBack, is_gone};
use seawall_media::{Region, sim};
use seawall_wire::desk::Desk;

use super::Journal;
use super::way::{Way, Writer};
use crate::Errno;

const SPINS: u32 = 128;
/// Naps after which somebody looks whether the leader is dead and nobody noticed.
#[cfg(feature = "std")]
const LOOK: u32 = 32;
const NAP: futex::Timespec = futex::Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// Leadership, until dropped.
pub(super) struct Lead<'a> {
    desk: Desk<'a>,
    /// Until the lock is free again.
    _signals: HeldBack,
}

impl Journal {
    /// Leads, waiting as long as it takes.
    ///
    /// # Errors
    /// EIO once the device failed; EBADF without a way to it.
    pub(super) fn lead<'a>(&'a self, image: &'a Region) -> Result<Writer<'a>, Errno> {
        let desk = self.desk(image);
        let mut wait = Wait::default();
        loop {
            if let Some(lead) = try_lead(desk) {
                return lead.with(&self.way);
            }
            wait.nap(desk);
            #[cfg(feature = "std")]
            wait.look_for_the_dead(desk);
        }
    }

    /// True while a thread of this process leads.
    pub fn is_led_by_us(&self, image: &Region) -> bool {
        self.desk(image).lock().load(Acquire) >> 32 == me() >> 32
    }

    /// Frees the lock if the program that this process was before its exec holds it: then the thread that led is gone,
    /// but one by its numbers lives. `nobody_leads` is true before any thread of this program could; asked once by
    /// one thread of it.
    pub fn bury_former_self(&self, image: &Region, nobody_leads: impl FnOnce() -> bool) {
        let desk = self.desk(image);
        let holder = desk.lock().load(SeqCst);
        let former = holder >> 32 == me() >> 32 && nobody_leads();
        if former && desk.lock().compare_exchange(holder, 0, SeqCst, Relaxed).is_ok() {
            ring(desk);
        }
    }
}

/// Leads if nobody does, or whoever does is dead.
pub(super) fn try_lead(desk: Desk<'_>) -> Option<Lead<'_>> {
    let holder = desk.lock().load(Acquire);
    if holder != 0 && !is_dead(holder) {
        return None;
    }
    let signals = HeldBack::all();
    let mine = desk.lock().compare_exchange(holder, me(), SeqCst, Relaxed).is_ok();
    // Lazily: one that is made gives the lock back when it is dropped.
    mine.then(|| Lead { desk, _signals: signals })
}

impl<'a> Lead<'a> {
    /// Itself with the device, unless that failed: then it cannot do anything.
    pub(super) fn with(self, way: &'a Way) -> Result<Writer<'a>, Errno> {
        if self.desk.failed().load(SeqCst) == 0 { Writer::new(self, way) } else { Err(Errno::IO) }
    }

    pub(super) fn desk(&self) -> Desk<'a> {
        self.desk
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
    /// Now and then: whoever leads may be dead, and whoever should notice may be waiting for us.
    #[cfg(feature = "std")]
    fn look_for_the_dead(&self, desk: Desk<'_>) {
        if self.spins > SPINS && self.spins.is_multiple_of(LOOK) {
            bury_leader(desk);
        }
    }

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
    let (pid, tid) = ((holder >> 32) as i32, holder as i32);
    // The thread, as its process may live on without it: another one of it has called exec.
    sim::is_dead(pid as u32).unwrap_or_else(|| is_gone(pid, tid))
}

/// Frees the lock if its holder is dead, and be it that nobody waited for that process yet: then its id still
/// exists, and who waits for the lock takes it for alive. The daemon's.
#[cfg(feature = "std")]
pub fn bury_leader(desk: Desk<'_>) {
    let holder = desk.lock().load(Acquire);
    let dead = holder != 0 && (is_dead(holder) || is_zombie(holder));
    if dead && desk.lock().compare_exchange(holder, 0, SeqCst, Relaxed).is_ok() {
        ring(desk);
    }
}

/// True for a thread that has ended and is still listed: a process that nobody waited for. Who may not be looked at
/// is none.
#[cfg(feature = "std")]
fn is_zombie(holder: u64) -> bool {
    let (pid, tid) = (holder >> 32, holder as u32);
    let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
    // Its name may hold anything; the state follows behind it.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some('Z' | 'X'))
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    const fn word(pid: u32) -> u64 {
        (pid as u64) << 32 | pid as u64
    }

    #[test]
    fn a_leader_that_nobody_waited_for_is_dead_and_a_living_one_is_not() {
        let file = tempfile::tempfile_in("/dev/shm").expect("a file");
        let len = Desk::bytes_for(1) as u64;
        file.set_len(len).expect("room");
        let region = Region::map(&file, len, false).expect("a mapping");
        let desk = Desk::new(&region, 0);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("spawned");
        desk.lock().store(word(child.id()), SeqCst);
        bury_leader(desk);
        assert_eq!(desk.lock().load(SeqCst), word(child.id()), "it lives");
        child.kill().expect("killed");
        while !is_zombie(word(child.id())) {
            std::thread::yield_now();
        }
        assert!(!is_dead(word(child.id())), "its id still exists");
        bury_leader(desk);
        assert_eq!(desk.lock().load(SeqCst), 0);
        child.wait().expect("reaped");
        desk.lock().store(word(child.id()), SeqCst);
        assert!(try_lead(desk).is_some(), "who waits takes over from one that is gone");
    }
}
