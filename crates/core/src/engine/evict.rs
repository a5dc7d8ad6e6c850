//! Eviction: a file gives its slot up to another one.
//!
//! Input: a file that nobody has open for writing, and nobody can open for writing until this is over; the daemon
//! proves that to itself (`seawall-daemon`, `evict`). Output: a slot whose generation is another, or no change.
//!
//! A file goes without live records, so what is left of it in the log is never looked at again: recovery forgets
//! records of a slot's former use. Whoever writes the file next registers it anew.

use core::sync::atomic::Ordering::{Acquire, SeqCst};

use seawall_wire::shm::{File, Flag};

use super::{Engine, FileRef};
use crate::lock;
use crate::{Errno, Owner};

impl Engine {
    /// How dear it is to evict the file: those that are all on disk first, of them the one that was written
    /// longest ago. `None`: something holds it out of the log, or it has a history (a failed sync, a lost
    /// holder) that must not be forgotten.
    pub fn eviction_price(&self, f: File<'_>) -> Option<(bool, u64)> {
        let flags = f.flags().load(Acquire);
        let free = f.sticky().load(Acquire) == 0 && !Flag::NEVER_TRACK.any_in(flags);
        let last = f.last_lsn().load(Acquire);
        (Flag::USED.any_in(flags) && free).then_some((last > f.watermark().load(Acquire), last))
    }

    /// Takes the file's slot away from it; `retire` is a real fdatasync of it. False: it is in use after all, or
    /// the disk did not take it, and it stays. The slot is still to be taken out of the tables.
    pub fn evict(&self, who: Owner, file: FileRef, retire: impl FnOnce() -> Result<(), Errno>) -> bool {
        let Some(f) = self.file(file) else { return false };
        // Never waits: whoever is inside uses it.
        let Some(_alone) = lock::try_enter(f, who) else { return false };
        if !self.knows(file) || self.eviction_price(f).is_none() {
            return false;
        }
        self.leave(file.slot, f, Flag(0), retire);
        let is_live = self.eviction_price(f).is_none_or(|(is_live, _)| is_live);
        if is_live {
            return false;
        }
        f.generation().fetch_add(1, SeqCst);
        f.flags().store(0, SeqCst);
        true
    }
}
