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
//! # Bells
//!
//! Who waits needs either the capture that is being written, or the next one. When a leader is through the first are
//! served, and of the others *one* has to get up: to lead. So there are two bells, by the lowest bit of the capture's
//! number; one sleeper is woken by the next one's bell, the *heir*, and only then, while it looks what there is to write,
//! everybody by the other. Whoever comes by while the lock is free leads at once: then the heir finds the lock taken
//! and sleeps on. A wake-up that is lost with an heir that is killed costs a nap, never more.
//!
//! Bells ring after the lock is free, and who waits looks at its bell *before* it looks whether it was served: what
//! happens in between is seen by its number.
//!
//! No signal handler runs while its thread leads: its sync could neither lead nor wait for itself.
//!
//! A *stopped* leader is waited for: it may be inside its device write, and a write that came late could land on
//! a later batch. The daemon makes it go on.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use rustix::process::getpid;
use rustix::thread::{futex, gettid};
use seawall_media::signals::{HeldBack, is_gone};
use seawall_media::{Region, sim};
use seawall_wire::desk::Desk;

use super::Journal;
use super::way::{Way, Writer};
use crate::Errno;

/// About a microsecond: a device is rarely faster than falling asleep and being woken.
const SPINS: u32 = 16;
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
        let mut wait = Wait::new(desk, true);
        loop {
            wait.look(desk.begun().load(SeqCst) + 1);
            if let Some(lead) = wait.try_lead() {
                return lead.with(&self.way);
            }
            wait.nap();
            #[cfg(feature = "std")]
            wait.look_for_the_dead();
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
        if holder >> 32 == me() >> 32 && nobody_leads() {
            take_from(desk, holder);
        }
    }
}

/// Leads if nobody does, or whoever does is dead, if that is to be looked at: it takes a system call.
fn try_lead(desk: Desk<'_>, looks: bool) -> Option<Lead<'_>> {
    let holder = desk.lock().load(Acquire);
    if holder != 0 && (!looks || !is_dead(holder)) {
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
        let ring = Ring::of(self.desk);
        self.desk.lock().store(0, SeqCst);
        ring.ring(self.desk);
    }
}

/// Frees the lock that `holder` will not free any more.
fn take_from(desk: Desk<'_>, holder: u64) {
    let ring = Ring::of(desk);
    if desk.lock().compare_exchange(holder, 0, SeqCst, Relaxed).is_ok() {
        ring.ring(desk);
    }
}

/// Whom to wake when the lock is free.
struct Ring {
    /// The next capture.
    next: u64,
    /// One of its sleepers will do: everybody else is served.
    one: bool,
}

impl Ring {
    /// To be asked while the lock is held: whoever has it next begins with the next capture.
    fn of(desk: Desk<'_>) -> Self {
        let begun = desk.begun().load(SeqCst);
        // A capture that failed, or whose leader died, serves nobody: then more than two are waited for. And on a
        // device that failed nobody will lead.
        let is_over = desk.done().load(SeqCst) == begun && desk.failed().load(SeqCst) == 0;
        Self { next: begun + 1, one: is_over }
    }

    fn ring(&self, desk: Desk<'_>) {
        let ((heirs, asleep), (others, too)) = (desk.bell(self.next), desk.bell(self.next + 1));
        heirs.fetch_add(1, SeqCst);
        others.fetch_add(1, SeqCst);
        // Nobody may be waiting any more; that is no error.
        if asleep.load(SeqCst) != 0 {
            let _ = futex::wake(heirs, futex::Flags::empty(), if self.one { 1 } else { i32::MAX as u32 });
        }
        if too.load(SeqCst) != 0 {
            too.store(0, SeqCst);
            let _ = futex::wake(others, futex::Flags::empty(), i32::MAX as u32);
        }
    }
}

/// One thread's wait for a leader.
pub(super) struct Wait<'a> {
    desk: Desk<'a>,
    spins: u32,
    /// The capture that is waited for, and what its bell was.
    capture: u64,
    bell: u32,
    /// Nobody rang for a whole nap.
    is_long: bool,
    /// Woken as the heir, or the first to come since the last capture began.
    leads_next: bool,
}

impl<'a> Wait<'a> {
    /// `leads_next`: nobody came before it since the last capture began.
    pub(super) const fn new(desk: Desk<'a>, leads_next: bool) -> Self {
        Self { desk, spins: 0, capture: 0, bell: 0, is_long: false, leads_next }
    }

    /// Leads if nobody does. Whether the leader lives is looked at when it takes long.
    pub(super) fn try_lead(&self) -> Option<Lead<'a>> {
        try_lead(self.desk, self.is_long)
    }

    /// To be called before the caller looks whether it has to wait any longer.
    pub(super) fn look(&mut self, capture: u64) {
        self.capture = capture;
        self.bell = self.desk.bell(capture).0.load(SeqCst);
    }

    /// Now and then: whoever leads may be dead, and whoever should notice may be waiting for us.
    #[cfg(feature = "std")]
    fn look_for_the_dead(&self) {
        if self.spins > SPINS && self.spins.is_multiple_of(LOOK) {
            bury_leader(self.desk);
        }
    }

    /// Waits for others, at most so many nanoseconds: who was woken as the heir, or is the first. If it dies the others
    /// lead after a nap.
    pub(super) fn gather(&mut self, ns: u64) {
        let (bell, sleepers) = self.desk.bell(self.capture);
        let timeout = if self.leads_next { futex::Timespec { tv_sec: 0, tv_nsec: ns as _ } } else { NAP };
        sleepers.store(1, SeqCst);
        let woken = futex::wait(bell, futex::Flags::empty(), self.bell, Some(&timeout));
        self.leads_next |= woken.is_ok();
    }

    /// Waits a little, at most until a leader is through. The caller looks again.
    pub(super) fn nap(&mut self) {
        if sim::waits() {
            self.is_long = true;
            return;
        }
        self.spins += 1;
        if self.spins <= SPINS {
            core::hint::spin_loop();
            return;
        }
        let (bell, sleepers) = self.desk.bell(self.capture);
        sleepers.store(1, SeqCst);
        if self.desk.lock().load(SeqCst) != 0 {
            let woken = futex::wait(bell, futex::Flags::empty(), self.bell, Some(&NAP));
            self.is_long = woken == Err(Errno::TIMEDOUT);
            self.leads_next |= woken.is_ok();
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
    if holder != 0 && (is_dead(holder) || is_zombie(holder)) {
        take_from(desk, holder);
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
    use super::super::desk_memory;
    use super::*;

    const fn word(pid: u32) -> u64 {
        (pid as u64) << 32 | pid as u64
    }

    #[test]
    fn one_leads_next_unless_nobody_was_served() {
        let region = desk_memory();
        let desk = Desk::new(&region, 0);
        desk.begun().store(7, SeqCst);
        assert!(!Ring::of(desk).one, "its leader died: all look");
        desk.done().store(7, SeqCst);
        let ring = Ring::of(desk);
        assert!(ring.one && ring.next == 8);
        let mut wait = Wait::new(desk, true);
        wait.look(8);
        ring.ring(desk);
        assert_ne!(wait.bell, desk.bell(8).0.load(SeqCst), "who looked before it rang does not fall asleep");
        desk.failed().store(5, SeqCst);
        assert!(!Ring::of(desk).one, "all hear of the failure");
    }

    #[test]
    fn a_leader_that_nobody_waited_for_is_dead_and_a_living_one_is_not() {
        let region = desk_memory();
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
        assert!(try_lead(desk, true).is_some(), "who waits takes over from one that is gone");
    }
}
