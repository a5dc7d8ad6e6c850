//! Files that were just made: until the first sync of any of them nothing of them has to survive a power cut, so their writes
//! go around the log.
//!
//! ```text
//! expect ─▶ made anew ─▶ write_around … write_around          the maker's, through the descriptor that it was made with
//!                              │
//!                              │ revoke: before the last real sync of a file that has no slot, and before any registration
//!                              ▼
//!                         registered at its next write, with a real sync of what it has by then
//! ```
//!
//! Such a file may have gigabytes that the disk lacks, and nobody should wait for them. So whoever syncs it does so twice:
//!
//! ```text
//! sync, while its maker goes on ─ revoke ─ sync what was written meanwhile
//! ```
//!
//! A [`Right`] is of a period. A revocation ends the period, for all processes and files: a checkpoint, which is what
//! syncs such files, syncs them all.
//!
//! Why that is sound for PostgreSQL's relations: a checkpoint that completes has synced every file that was written before
//! it, so redo that begins later finds each page whole. Redo that begins earlier makes the file and initialises each of its
//! pages, whatever it finds there; PostgreSQL relies on that without Seawall, too.
//!
//! Invariant: when [`revoke`](Engine::revoke_rights) returns, no write is under way that began before it under a right, and
//! none begins. So a sync that follows has the whole of each such write, and each later write is a record.
//!
//! What may not be trusted: that a process which writes goes on. One that died is not waited for, and one that is stopped, or
//! takes longer than two seconds, is given up: it gets no right any more, and its late write makes the file's next sync a real
//! one.

use core::num::NonZeroU64;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};

use rustix::thread::{Timespec, nanosleep};
use seawall_media::sim;
use seawall_wire::shm::Client;

use super::attach::Engine;
use crate::Owner;

const SPINS: u32 = 1000;
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000 };
/// Naps before a writer is given up: some two seconds.
const NAPS_AT_MOST: u32 = 8000;
/// Naps between two checks whether a writer's process is stopped: some 30 ms.
const NAPS_UNTIL_LOOK: u32 = 120;

/// The right to write a file around the log, by the period in which the file was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right(NonZeroU64);

impl Right {
    /// Periods have fewer bits than this.
    pub const BITS: u32 = 52;

    /// The period, to be remembered.
    pub fn word(self) -> u64 {
        self.0.get()
    }

    /// The right that was remembered; 0 is none.
    pub fn from_word(word: u64) -> Option<Self> {
        NonZeroU64::new(word).map(Self)
    }
}

/// A write around the log, under way until this is dropped.
#[must_use = "a sync does not wait for the write once this is dropped"]
pub struct Around<'e> {
    client: Client<'e>,
    right: Right,
}

impl Around<'_> {
    /// True if a sync did not wait for the end of this write. The file's next sync must then be a real one.
    pub fn is_given_up(&self) -> bool {
        self.client.is_given_up().load(SeqCst) != 0
    }
}

impl Drop for Around<'_> {
    fn drop(&mut self) {
        under_way(self.client, self.right.word()).fetch_sub(1, SeqCst);
    }
}

/// How many writes of this period a process has under way. Two periods in a row have a count each, so that nobody who waits for
/// the end of the former one has to wait for the writes of the next.
fn under_way(client: Client<'_>, period: u64) -> &AtomicU32 {
    if period & 2 == 0 { client.around() } else { client.around_next() }
}

impl Engine {
    /// The right to write a file around the log that the caller makes anew after this call. A file that was there already gives
    /// no right.
    pub fn expect_unsynced(&self) -> Right {
        let period = self.shm().header().period();
        loop {
            let now = period.load(SeqCst);
            let marked = now | 1;
            let is_marked = now == marked || period.compare_exchange(now, marked, SeqCst, SeqCst).is_ok();
            if let Some(right) = Right::from_word(marked).filter(|_| is_marked) {
                return right;
            }
        }
    }

    /// Begins a write around the log. `None`: the right was revoked, and the write needs a record.
    #[inline]
    pub fn write_around(&self, who: Owner, right: Right) -> Option<Around<'_>> {
        let client = self.shm().client(who.client())?;
        // First this, then the look: a revocation does it in the other order.
        under_way(client, right.word()).fetch_add(1, SeqCst);
        let around = Around { client, right };
        let holds = self.shm().header().period().load(SeqCst) == right.word();
        (holds && !around.is_given_up()).then_some(around)
    }

    /// True if somebody may write around the log now. False: [`revoke_rights`](Self::revoke_rights) has nothing to do.
    pub fn has_rights(&self) -> bool {
        let header = self.shm().header();
        let now = header.period().load(SeqCst);
        header.period_settled().load(SeqCst) < now + (now & 1)
    }

    /// Ends every right, and waits for the writes that are under way. To be called before a real sync of a file that has no
    /// slot, and before a registration. Costs two loads while nobody has a right.
    pub fn revoke_rights(&self) {
        let header = self.shm().header();
        let now = header.period().load(SeqCst);
        // Odd while anybody may have a right.
        let next = now + (now & 1);
        if next != now {
            // If it fails another thread has ended the period.
            let _ = header.period().compare_exchange(now, next, SeqCst, SeqCst);
        }
        let settled = header.period_settled().load(SeqCst);
        if settled < next {
            self.wait_for_writes_around(next - 1);
            if settled + 2 < next {
                // Whoever ended the period before that one has not seen its writes end yet.
                self.wait_for_writes_around(next - 3);
            }
            header.period_settled().fetch_max(next, SeqCst);
        }
    }

    fn wait_for_writes_around(&self, period: u64) {
        for number in 0..self.shm().shape().clients {
            if let Some(client) = self.shm().client(number) {
                self.wait_for(number, client, period);
            }
        }
    }

    fn wait_for(&self, number: u32, client: Client<'_>, period: u64) {
        let is_over =
            || under_way(client, period).load(SeqCst) == 0 || client.is_given_up().load(SeqCst) != 0;
        let process = Owner::new(number, 0);
        let mut waits = 0;
        while !is_over() && !process.is_dead(self.shm()) {
            if sim::waits() {
                continue;
            }
            waits += 1;
            let naps = u32::saturating_sub(waits, SPINS);
            let looks = naps > 0 && naps.is_multiple_of(NAPS_UNTIL_LOOK);
            if naps > NAPS_AT_MOST || looks && process.is_halted(self.shm()) {
                client.is_given_up().store(1, SeqCst);
            } else if naps > 0 {
                let _ = nanosleep(&NAP);
            } else {
                core::hint::spin_loop();
            }
        }
    }

    /// Whatever the slot's former process had under way has ended with it.
    pub(super) fn begins_with_nothing_under_way(client: Client<'_>) {
        client.around().store(0, SeqCst);
        client.around_next().store(0, SeqCst);
        client.is_given_up().store(0, SeqCst);
        client.outside().store(0, SeqCst);
        client.at_guards().store(0, SeqCst);
    }
}
