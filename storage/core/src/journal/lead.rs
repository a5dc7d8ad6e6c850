//! The lead: who writes batches. It outlives no one, and nobody waits for a leader that is dead or stopped.
//!
//! ```text
//!           compare-and-swap                    store 0, bell, wake
//!   free ──────────────────────▶ a leader ─────────────────────────▶ free
//!                                   │ it is dead, or stopped
//!                                   ▼
//!                                a waiter that noticed
//! ```
//!
//! # A leader that is replaced
//!
//! A process may be stopped for any length of time, because of SIGSTOP, a debugger, or a frozen control group (`docker
//! pause`). When it goes on, it does what it was about to do, wherever that was, and nothing on a device revokes a
//! write whose place is in a register already. So a leader may be replaced at *any* step, also by mistake, and whatever
//! it does afterwards is harmless:
//!
//! * It builds its batch on its own seat ([`Desk::SEATS`]), which nobody else touches while it lives.
//! * Before it writes, it announces the place on its seat, and only then checks whether it still leads. If it was
//!   replaced before that check, it notices and writes nothing; a thread that replaces it later sees the announced
//!   stretch and writes elsewhere.
//! * A thread that replaces it first changes [`Desk::last`]: then the compare-and-swap fails by which a batch counts.
//! * Cursors move by compare-and-swap from their values at the beginning of the capture; everything else only grows.
//!
//! What cannot be done that way is done *pinned*: changes of tables in memory, anchors, the membership of a mirror.
//! Others wait for a leader that is stopped while it is pinned, and the daemon makes it go on if it can.
//!
//! Replacing a leader that only waits for a slow device costs a write and gains nothing. So a leader that runs, or
//! waits in the kernel, gets a long time, and twice as long after each replacement with no commit since.
//!
//! No signal handler runs while its thread leads: a sync in the handler could neither lead nor wait for its own thread.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use rustix::io::Errno;
use rustix::thread::futex;
use seawall_media::signals::HeldBack;
use seawall_media::sim;
use seawall_wire::desk::{Desk, LeadWord};

use super::lock::{fence_off, take_from};
use super::seat::sit;
use crate::thread::{Doing, Thread};

/// About a microsecond: a device is rarely faster than a thread can fall asleep and be woken.
const SPINS: u32 = 16;
const NAP: futex::Timespec = futex::Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
/// Naps before a leader that is stopped is replaced: some 25 ms.
const PATIENCE: u32 = 10;
/// Naps before a leader that runs, or waits for its device, is replaced: a second.
const PATIENCE_AT_WORK: u32 = 500;
/// Naps after which a pinned leader that cannot be looked at is taken for dead: five seconds.
const PATIENCE_PINNED: u32 = 2500;
/// How often patience doubles while nothing is committed.
const DOUBLES: u32 = 8;

/// The error that a replaced leader gets: what it did does not count, and it begins anew.
pub(super) const REPLACED: Errno = Errno::RESTART;

/// Leadership, until dropped, unless another thread takes it.
pub(super) struct Lead<'a> {
    desk: Desk<'a>,
    word: LeadWord,
    /// Until the lock is free again.
    _signals: HeldBack,
}

/// Leads, waiting as long as it takes.
pub(super) fn take_lead(desk: Desk<'_>, client: u32) -> Lead<'_> {
    let mut wait = Wait::new(desk, client, true);
    loop {
        wait.look(desk.begun().load(SeqCst) + 1);
        if let Some(lead) = wait.try_lead() {
            return lead;
        }
        wait.nap();
    }
}

/// Leads in place of the leader that holds the lock by this word, 0 for none.
fn lead_in_place_of<'a>(desk: Desk<'a>, client: u32, from: u64) -> Option<Lead<'a>> {
    let signals = HeldBack::all();
    let seat = sit(desk, client)?;
    let word = LeadWord::new(desk.terms().fetch_add(1, SeqCst) + 1, seat);
    if desk.lock().compare_exchange(from, word.0, SeqCst, Relaxed).is_err() {
        desk.seat(seat).holder().store(0, SeqCst);
        return None;
    }
    if from != 0 {
        fence_off(desk);
    }
    Some(Lead { desk, word, _signals: signals })
}

impl<'a> Lead<'a> {
    pub(super) fn desk(&self) -> Desk<'a> {
        self.desk
    }

    pub(super) fn seat(&self) -> u32 {
        self.word.seat()
    }

    /// The lock's word for it.
    pub(super) fn word(&self) -> u64 {
        self.word.0
    }

    /// True as long as no other thread took its place.
    pub(super) fn is_held(&self) -> bool {
        LeadWord(self.desk.lock().load(SeqCst)).unpinned() == self.word
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.desk.lock().load(SeqCst) == self.word.pinned().0
    }

    /// Nobody takes its place from now on, unless it dies. False: another thread already did.
    pub(super) fn pin(&self) -> bool {
        let (free, pinned) = (self.word.0, self.word.pinned().0);
        self.desk.lock().compare_exchange(free, pinned, SeqCst, Relaxed).is_ok() || self.is_pinned()
    }

    pub(super) fn unpin(&self) {
        let was = self.desk.lock().compare_exchange(self.word.pinned().0, self.word.0, SeqCst, Relaxed);
        debug_assert!(was.is_ok(), "{was:?} was replaced though it is pinned");
    }

    /// Announces that it writes there, or may write there, until it [is through](Self::is_through). False: another
    /// thread took its place, and may not know about the write.
    pub(super) fn claim(&self, position: u64, size: u64) -> bool {
        let seat = self.desk.seat(self.seat());
        seat.position().store(position, SeqCst);
        seat.size().store(size, SeqCst);
        self.is_held()
    }

    /// It no longer writes anywhere.
    pub(super) fn is_through(&self) {
        self.desk.seat(self.seat()).size().store(0, SeqCst);
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.is_through();
        let holds = self.desk.lock().load(SeqCst);
        if LeadWord(holds).unpinned() == self.word {
            take_from(self.desk, holds);
        }
        self.desk.seat(self.seat()).holder().store(0, SeqCst);
    }
}

/// One thread's wait for a leader.
pub(super) struct Wait<'a> {
    desk: Desk<'a>,
    client: u32,
    spins: u32,
    /// The capture that is waited for, and the value of its bell.
    capture: u64,
    bell: u32,
    /// The lead that is waited for, and for how many whole naps nobody rang since it was first seen.
    lead: LeadWord,
    naps: u32,
    /// Woken as the heir, or the first to come since the last capture began.
    leads_next: bool,
}

impl<'a> Wait<'a> {
    /// `leads_next`: nobody came before it since the last capture began.
    pub(super) fn new(desk: Desk<'a>, client: u32, leads_next: bool) -> Self {
        Self { desk, client, spins: 0, capture: 0, bell: 0, lead: LeadWord(0), naps: 0, leads_next }
    }

    /// Leads if nobody does, or in place of a leader that is dead or stopped, which is checked when the wait takes
    /// long.
    pub(super) fn try_lead(&mut self) -> Option<Lead<'a>> {
        let lead = LeadWord(self.desk.lock().load(Acquire));
        if lead.unpinned() != self.lead {
            (self.lead, self.naps) = (lead.unpinned(), 0);
        }
        if lead.0 != 0 && (self.naps == 0 || !self.may_replace()) {
            return None;
        }
        lead_in_place_of(self.desk, self.client, lead.0)
    }

    /// True if it need not wait for the leader any longer.
    fn may_replace(&self) -> bool {
        let Some((lead, word)) = self.desk.leader().filter(|(lead, _)| lead.unpinned() == self.lead) else {
            return false;
        };
        let namespace = self.desk.seat(lead.seat()).namespace().load(SeqCst);
        let leader = Thread { word, namespace };
        if leader.is_dead() {
            return true;
        }
        if let Some(simulated) = sim::replaces((word >> 32) as u32) {
            return simulated && !lead.is_pinned();
        }
        if lead.is_pinned() {
            return leader.doing() == Doing::Ended || !leader.is_near() && self.naps >= PATIENCE_PINNED;
        }
        let doubled = self.desk.replaced().load(Relaxed).min(DOUBLES);
        self.naps >= PATIENCE
            && match leader.doing() {
                Doing::Ended => true,
                Doing::Works => self.naps >= PATIENCE_AT_WORK << doubled,
                Doing::StandsStill | Doing::Unknown => self.naps >= PATIENCE << doubled,
            }
    }

    #[cfg(test)]
    pub(super) fn bell(&self) -> u32 {
        self.bell
    }

    /// Call this before checking whether the wait is over.
    pub(super) fn look(&mut self, capture: u64) {
        self.capture = capture;
        self.bell = self.desk.bell(capture).0.load(SeqCst);
    }

    /// Waits for others, at most this many nanoseconds, if it was woken as the heir or is the first. If it dies, the
    /// others lead after a nap.
    pub(super) fn gather(&mut self, ns: u64) {
        let (bell, sleepers) = self.desk.bell(self.capture);
        let timeout = if self.leads_next { futex::Timespec { tv_sec: 0, tv_nsec: ns as _ } } else { NAP };
        sleepers.store(1, SeqCst);
        let woken = futex::wait(bell, futex::Flags::empty(), self.bell, Some(&timeout));
        self.leads_next |= woken.is_ok();
    }

    /// Sleeps until a leader is through, for a nap at most.
    pub(super) fn doze(&mut self) {
        let (bell, sleepers) = self.desk.bell(self.capture);
        sleepers.store(1, SeqCst);
        if futex::wait(bell, futex::Flags::empty(), self.bell, Some(&NAP)) == Err(Errno::TIMEDOUT) {
            self.naps += 1;
        }
    }

    /// For how many whole naps nobody rang.
    pub(super) fn naps(&self) -> u32 {
        self.naps
    }

    /// Waits a little, at most until a leader is through. The caller looks again.
    pub(super) fn nap(&mut self) {
        if sim::waits() {
            self.naps += 1;
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
            self.naps = match woken {
                Err(Errno::TIMEDOUT) => self.naps + 1,
                // A signal tells nothing about the leader, and a program with a timer gets many.
                Err(Errno::INTR) => self.naps,
                _ => 0,
            };
            self.leads_next |= woken.is_ok();
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::super::desk_memory::desk_memory;
    use super::super::seat::{bury_dead, claimed_by_others, replaced, sitting};
    use super::*;

    /// Another process leads.
    fn led_by(desk: Desk<'_>, pid: u32) -> LeadWord {
        let word = LeadWord::new(desk.terms().fetch_add(1, SeqCst) + 1, 3);
        let seat = desk.seat(3);
        seat.holder().store(u64::from(pid) << 32 | u64::from(pid), SeqCst);
        seat.namespace().store(Thread::this().namespace, SeqCst);
        desk.lock().store(word.0, SeqCst);
        word
    }

    fn after(desk: Desk<'_>, naps: u32) -> Option<Lead<'_>> {
        let mut wait = Wait::new(desk, 0, true);
        assert!(wait.try_lead().is_none(), "at once");
        wait.naps = naps;
        wait.try_lead()
    }

    #[test]
    fn a_leader_that_nobody_waited_for_is_dead_and_a_living_one_is_not() {
        let region = desk_memory();
        let desk = Desk::new(&region, 0);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("spawned");
        let word = led_by(desk, child.id());
        bury_dead(desk);
        assert_eq!(desk.lock().load(SeqCst), word.0, "it lives");
        child.kill().expect("killed");
        while sitting(desk.seat(3)).expect("a seat").doing() != Doing::Ended {
            std::thread::yield_now();
        }
        assert!(after(desk, 1).is_none(), "its id still exists");
        bury_dead(desk);
        assert_eq!((desk.lock().load(SeqCst), desk.seat(3).holder().load(SeqCst)), (0, 0));
        child.wait().expect("reaped");
        led_by(desk, child.id());
        assert!(after(desk, 1).is_some(), "who waits takes over from one that is gone");
    }

    #[test]
    fn one_that_stands_still_is_replaced_and_one_that_works_is_waited_for() {
        let region = desk_memory();
        let desk = Desk::new(&region, 0);
        let mut asleep = std::process::Command::new("sleep").arg("60").spawn().expect("spawned");
        while (Thread { word: u64::from(asleep.id()) << 32 | u64::from(asleep.id()), ..Thread::this() })
            .doing()
            != Doing::StandsStill
        {
            std::thread::yield_now();
        }
        let word = led_by(desk, asleep.id());
        assert!(after(desk, PATIENCE - 1).is_none());
        desk.lock().store(word.pinned().0, SeqCst);
        assert!(after(desk, 100 * PATIENCE).is_none(), "pinned");
        desk.lock().store(word.0, SeqCst);
        let last = desk.last().load(SeqCst);
        let heir = after(desk, PATIENCE).expect("in its place");
        assert_ne!(desk.last().load(SeqCst), last, "what it had in hand does not count");
        assert_eq!(replaced(desk).collect::<Vec<_>>(), [asleep.id()]);
        drop(heir);
        led_by(desk, asleep.id());
        assert!(after(desk, PATIENCE).is_none(), "nothing was committed: longer");
        assert!(after(desk, 2 * PATIENCE).is_some());
        // Its main thread waits for this test, and is idle; this thread runs.
        let us = led_by(desk, std::process::id());
        desk.seat(us.seat()).holder().store(Thread::this().word, SeqCst);
        desk.replaced().store(0, SeqCst);
        assert!(after(desk, PATIENCE_AT_WORK - 1).is_none(), "it works");
        assert!(after(desk, PATIENCE_AT_WORK).is_some());
        asleep.kill().expect("killed");
        asleep.wait().expect("reaped");
    }

    #[test]
    fn one_that_was_replaced_keeps_its_seat_and_its_stretch_until_it_goes_on() {
        let region = desk_memory();
        let desk = Desk::new(&region, 0);
        let first = lead_in_place_of(desk, 0, 0).expect("nobody leads");
        assert!(first.claim(8192, 4096) && first.is_held());
        let heir = lead_in_place_of(desk, 0, first.word.0).expect("in its place");
        assert!(heir.seat() != first.seat() && !first.is_held() && !first.pin());
        assert_eq!(claimed_by_others(desk, heir.seat()).collect::<Vec<_>>(), [(8192, 4096)]);
        assert!(!first.claim(8192, 4096), "it learns of it");
        let held = desk.lock().load(SeqCst);
        drop(first);
        assert_eq!(desk.lock().load(SeqCst), held, "the lock is not its to free");
        assert_eq!(claimed_by_others(desk, heir.seat()).count(), 0);
        drop(heir);
        assert_eq!(desk.lock().load(SeqCst), 0);
    }
}
