//! The file's lock: orders the writes of one file, and outlives no one.
//!
//! ```text
//!            compare-and-swap                     swap to 0, wake
//!   free ───────────────────────▶ held by owner ─────────────────▶ free
//!                                      │ the owner's process is dead, or stopped, or frozen, or it
//!                                      ▼ has not moved for two seconds (a thread that was torn out of its call)
//!                                 held by the waiter that noticed
//! ```
//!
//! If the holder died while it published, no waiter takes its place: the kernel may have copied half of a page, and a
//! sync would leave that page torn. The daemon, which can open every file, publishes the record again and frees the
//! lock (`reap`). That takes milliseconds; only if no daemon does it within five seconds does a waiter go on with the
//! file as it is.
//!
//! What may not be trusted: that the holder still runs. A holder that lost its lock finds out when it releases it, and
//! then asks for a real sync, because its publish may have come late. It never gets the lock back, whether the new
//! holder lets go before it or after it.
//!
//! A signal handler that writes to the very file that its own thread is writing finds itself as the owner: that is
//! [`Entered::Nested`], and it must not wait.

use core::cell::Cell;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use rustix::thread::futex;
use seawall_media::sim;
use seawall_stats::ticks;
use seawall_wire::shm::{Lane, Shm};

use super::{Flag, Slot};
use crate::Owner;

const SPINS: u32 = 128;
const NAP: futex::Timespec = futex::Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
/// Naps before a live holder counts as lost: two seconds.
const NAPS_UNTIL_STUCK: u32 = 1000;
/// Naps between two checks whether the holder's process is stopped, which makes the holder count as lost: some 30 ms.
const NAPS_UNTIL_LOOK: u32 = 14;

/// Naps until a waiter goes on although nobody has finished the publish of a dead holder: five seconds, as long as a
/// file that must not go around the log waits for a daemon ([`Patience`](crate::patience::Patience)).
const NAPS_UNTIL_UNFINISHED: u32 = 2500;

/// Names no thread, and counts as dead. It goes back into the lock in place of a holder that was lost alive: with its
/// own word there, the holder would believe that it is still inside.
const LOST_ALIVE: u64 = 1;

/// How a file was entered.
pub enum Entered<'a> {
    /// Alone, until it is dropped.
    Alone(Inside<'a>),
    /// This thread is inside already.
    Nested,
}

impl<'a> Entered<'a> {
    /// The lock, unless this thread has it already.
    pub fn alone(self) -> Option<Inside<'a>> {
        match self {
            Self::Alone(inside) => Some(inside),
            Self::Nested => None,
        }
    }
}

/// A file's lock, held: every change of the file's state needs it, except those of [`Slot`].
pub struct Inside<'a> {
    slot: Slot<'a>,
    owner: Owner,
    /// The holder that was lost inside, 0 for none.
    lost: Cell<u64>,
    /// Ticks spent waiting, 0 if nobody was inside.
    waited: u64,
}

impl<'a> Inside<'a> {
    fn new(slot: Slot<'a>, owner: Owner, lost: u64, waited: u64) -> Self {
        Self { slot, owner, lost: Cell::new(lost), waited }
    }

    /// The file's slot.
    #[inline]
    pub fn slot(&self) -> Slot<'a> {
        self.slot
    }

    /// How many ticks of the time-stamp counter it took to get in, 0 if nobody was inside.
    #[inline]
    pub fn waited(&self) -> u64 {
        self.waited
    }

    /// True if the lock was taken from a holder that was lost inside. Its record may be in the log and not in the file:
    /// the file must be retired before anything else, or that record could come back after others have seen the file
    /// without it.
    #[inline]
    pub fn inherited(&self) -> bool {
        self.lost.get() != 0
    }

    /// The file was retired, and what the lost holder left has been dealt with. Without this call the lock goes back:
    /// to the lost holder if that one is dead, otherwise to nobody, and the next one to enter deals with it.
    #[inline]
    pub fn settled(&self) {
        self.lost.set(0);
    }
}

impl<'a> Slot<'a> {
    /// Enters the file, waiting as long as it takes.
    #[inline]
    pub fn enter(self, shm: &'a Shm, owner: Owner) -> Entered<'a> {
        self.enter_or(shm, owner, &|| ())
    }

    /// The same; `finish` is called repeatedly while a holder that died in its publish is in the way.
    #[inline]
    pub(crate) fn enter_or(self, shm: &'a Shm, owner: Owner, finish: &dyn Fn()) -> Entered<'a> {
        match self.lock().compare_exchange(0, owner.word(), Acquire, Relaxed) {
            Ok(_) => Entered::Alone(Inside::new(self, owner, 0, 0)),
            Err(holder) if holder == owner.word() => Entered::Nested,
            Err(_) => wait(shm, self, owner, finish),
        }
    }

    /// Enters the file if nobody is inside.
    pub fn try_enter(self, owner: Owner) -> Option<Inside<'a>> {
        let free = self.lock().compare_exchange(0, owner.word(), Acquire, Relaxed).is_ok();
        free.then(|| Inside::new(self, owner, 0, 0))
    }

    /// Enters the file in place of a holder that the caller knows to be dead, if that holder is still inside.
    #[cfg(feature = "std")]
    pub(crate) fn take_over(self, dead: u64, owner: Owner) -> Option<Inside<'a>> {
        let taken = self.lock().compare_exchange(dead, owner.word(), SeqCst, Relaxed).is_ok();
        taken.then(|| Inside::new(self, owner, 0, 0))
    }

    /// The lane of a process that died while it published a change of this file, if nobody has dealt with it yet.
    pub(crate) fn half_published(self, shm: &Shm) -> Option<Lane<'_>> {
        let is_dead = |lane: &Lane<'_>| Owner::is_word_dead(lane.owner().load(Acquire), shm);
        shm.lanes().find(|lane| self.is_published_by(*lane) && is_dead(lane))
    }

    /// True for the lane of a change of this file whose publish has begun and which has not been retired since, neither
    /// with the file's content nor because its writer had lost the lock alive.
    pub(crate) fn is_published_by(self, lane: Lane<'_>) -> bool {
        !self.state().has(Flag::STUCK)
            && lane.record().load(Acquire) != 0
            && lane.slot().load(Acquire) == self.number()
            && lane.lsn().load(Acquire) > self.watermark()
    }
}

#[cold]
fn wait<'a>(shm: &'a Shm, slot: Slot<'a>, owner: Owner, finish: &dyn Fn()) -> Entered<'a> {
    let mut patience = Patience::new();
    let start = ticks();
    let waited = || ticks().wrapping_sub(start).max(1);
    loop {
        match slot.lock().compare_exchange(0, owner.word(), Acquire, Relaxed) {
            Ok(_) => {
                if patience.napped {
                    // The thread that woke this one has forgotten the other sleepers.
                    slot.waiters().store(1, SeqCst);
                }
                return Entered::Alone(Inside::new(slot, owner, 0, waited()));
            }
            Err(holder) if patience.is_over(shm, slot, holder) => {
                if slot.lock().compare_exchange(holder, owner.word(), Acquire, Relaxed).is_ok() {
                    if patience.meets_half(shm, slot) {
                        // The holder went on after the last check, and died in another publish.
                        let _ = slot.lock().compare_exchange(owner.word(), holder, SeqCst, Relaxed);
                        continue;
                    }
                    if patience.stuck {
                        slot.set(Flag::STUCK);
                    }
                    let lost = if patience.stuck { LOST_ALIVE } else { holder };
                    return Entered::Alone(Inside::new(slot, owner, lost, waited()));
                }
            }
            Err(_) => {
                if patience.unfinished {
                    finish();
                }
                nap(slot, patience.spins);
            }
        }
    }
}

/// What a waiter knows about the holder it waits for.
struct Patience {
    holder: u64,
    spins: u32,
    /// It has slept, or was about to.
    napped: bool,
    /// The holder's process lives, and its next steps may come late.
    stuck: bool,
    /// A process died in a publish here, and the publish has to be finished.
    unfinished: bool,
}

impl Patience {
    fn new() -> Self {
        Self { holder: 0, spins: 0, napped: false, stuck: false, unfinished: false }
    }

    /// Counts one look at `holder`; true if the waiter may take over.
    fn is_over(&mut self, shm: &Shm, slot: Slot<'_>, holder: u64) -> bool {
        if holder != self.holder {
            (self.holder, self.spins) = (holder, 0);
        }
        self.spins += 1;
        let naps = self.spins.saturating_sub(SPINS);
        self.napped |= naps > 0;
        let owner = Owner::from_word(holder);
        let dead = naps > 0 && owner.is_none_or(|owner| owner.is_dead(shm));
        let looks = || naps > 0 && naps.is_multiple_of(NAPS_UNTIL_LOOK);
        let halted = || looks() && owner.is_some_and(|owner| owner.is_halted(shm));
        self.stuck = !dead && (naps > NAPS_UNTIL_STUCK || sim::halts().unwrap_or_else(halted));
        let is_over = dead || self.stuck;
        // Half published by the dead holder, or by an earlier one whose publish that holder was finishing.
        self.unfinished = is_over && self.meets_half(shm, slot);
        is_over && !self.unfinished
    }

    /// True if the file has half of a dead process's change, and the daemon may still complete it.
    fn meets_half(&self, shm: &Shm, slot: Slot<'_>) -> bool {
        self.spins <= SPINS + NAPS_UNTIL_UNFINISHED && slot.half_published(shm).is_some()
    }
}

fn nap(slot: Slot<'_>, spins: u32) {
    if sim::waits() {
        return;
    }
    if spins <= SPINS {
        core::hint::spin_loop();
        return;
    }
    slot.waiters().store(1, SeqCst);
    if slot.lock().load(SeqCst) != 0 {
        // Woken, timed out or interrupted: in every case the caller looks again.
        let _ = futex::wait(slot.waiters(), futex::Flags::empty(), 1, Some(&NAP));
    }
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        let next = self.lost.get();
        if self.slot.lock().compare_exchange(self.owner.word(), next, SeqCst, Relaxed).is_err() {
            self.slot.disturb();
            return;
        }
        if self.slot.waiters().load(SeqCst) != 0 {
            wake(self.slot);
        }
    }
}

#[cold]
fn wake(slot: Slot<'_>) {
    slot.waiters().store(0, SeqCst);
    // Nobody may be waiting any more; that is no error.
    let _ = futex::wake(slot.waiters(), futex::Flags::empty(), 1);
}
