//! Holds: while a mapping, a stream or io_uring can write a file unseen, the file stays out of the log.
//!
//! A hold is an entry that names process and file, so that the daemon can end the holds of the dead. The file's own
//! count says the same, for a quick look. A process that dies between the two steps leaves them different, so the
//! daemon counts the entries.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use rustix::io::Errno;
use seawall_wire::shm::Hold;

use super::attach::Engine;
use super::enter::Entering;
use crate::Owner;
use crate::file::{FileRef, Flag};

impl Engine {
    /// Keeps the file out of the log until [`release`](Self::release) has been called as often. `retire` is a real
    /// fdatasync of the file.
    pub fn hold(&self, who: Owner, file: FileRef, retire: impl FnOnce() -> Result<(), Errno>) {
        let inside = match self.enter(who, file) {
            Entering::Alone(inside) => inside,
            // A signal handler cannot wait for its own thread: the file stays out for good.
            Entering::Nested(slot) => return slot.is_held_for_good(),
            Entering::Gone => return,
        };
        inside.leave(self.pool(), Flag::NONE, retire);
        match self.hold_of(who, file) {
            Some(hold) => {
                hold.count().fetch_add(1, SeqCst);
                inside.is_held();
            }
            None => inside.slot().is_held_for_good(),
        }
    }

    /// Ends one hold of this process. The file returns to the log after the next undisturbed real fsync.
    pub fn release(&self, who: Owner, file: FileRef) {
        let entered = self.enter(who, file);
        let slot = match &entered {
            Entering::Alone(inside) => inside.slot(),
            Entering::Nested(slot) => *slot,
            Entering::Gone => return,
        };
        let mine = self.shm().holds().find(|hold| is(hold, who, file));
        let Some(hold) = mine.filter(|hold| hold.count().load(Acquire) > 0) else { return };
        slot.hold_ends();
        if hold.count().fetch_sub(1, SeqCst) == 1 {
            hold.client().store(0, SeqCst);
        }
    }

    /// This process's entry for the file: the existing one, or a fresh one.
    fn hold_of(&self, who: Owner, file: FileRef) -> Option<Hold<'_>> {
        if let Some(mine) = self.shm().holds().find(|hold| is(hold, who, file)) {
            return Some(mine);
        }
        let free = self.shm().holds().find(|hold| {
            hold.client().load(Relaxed) == 0
                && hold.client().compare_exchange(0, who.client() + 1, SeqCst, Relaxed).is_ok()
        })?;
        free.count().store(0, SeqCst);
        free.slot().store(file.slot, SeqCst);
        free.generation().store(file.generation, SeqCst);
        Some(free)
    }
}

/// How many holds a file has by their entries, without those of these clients. While the caller holds the file's lock,
/// nobody else is in the middle of a step.
#[cfg(feature = "std")]
pub(crate) fn counted(engine: &Engine, file: FileRef, without: &[u32]) -> u32 {
    let is_of = |hold: &Hold<'_>| {
        let client = hold.client().load(Acquire);
        client != 0
            && !without.contains(&(client - 1))
            && hold.slot().load(Acquire) == file.slot
            && hold.generation().load(Acquire) == file.generation
    };
    engine.shm().holds().filter(is_of).map(|hold| hold.count().load(Acquire)).sum()
}

fn is(hold: &Hold<'_>, who: Owner, file: FileRef) -> bool {
    hold.client().load(Acquire) == who.client() + 1
        && hold.slot().load(Acquire) == file.slot
        && hold.generation().load(Acquire) == file.generation
}
