//! The changes of a file's state that need its lock.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use rustix::io::Errno;

use super::watermark::BORN;
use super::{Flag, Inside, Slot, State};
use crate::format::FOREVER;
use crate::store::Store;

/// What a real sync that begins now will cover once it has succeeded.
pub(crate) struct Covered {
    last: u64,
    epoch: u64,
    names: u64,
}

/// The log.
impl Inside<'_> {
    /// A record of the file gets this LSN.
    #[inline]
    pub(crate) fn logs(&self, lsn: u64) {
        let slot = self.slot();
        if cfg!(debug_assertions) {
            // In this order: a holder that lost the lock meanwhile sees that it did.
            let (last, state) = (slot.last_lsn(), slot.state());
            assert!(
                state.has(Flag::STUCK) || state.has(Flag::TRACKED | Flag::UNBORN) && lsn > last,
                "only what is in the log, or enters it with its content, is logged, in order: {state:?}, {lsn} after {last}"
            );
        }
        slot.newest().store(lsn, Release);
    }

    /// A write is in the log, with this many of the database's bytes.
    #[inline]
    pub(crate) fn logged(&self, bytes: u64) {
        let slot = self.slot();
        slot.writes().store(slot.writes().load(Relaxed) + 1, Relaxed);
        slot.bytes().store(slot.bytes().load(Relaxed) + bytes, Relaxed);
    }

    /// A write goes around the log: a real fsync that began before does not cover it.
    #[inline]
    pub(crate) fn goes_around(&self) {
        self.assert_out();
        self.slot().raise_epoch();
        self.slot().untracked_writes().fetch_add(1, Relaxed);
    }

    /// The file was changed by something that is neither logged nor counted.
    pub(crate) fn was_changed(&self) {
        self.slot().raise_epoch();
    }

    /// Everything that was written to the file is durable, or in the log: it is in the log from now on, if nothing keeps it out.
    pub(crate) fn track(&self, has_room: bool) {
        let slot = self.slot();
        if !slot.may_track(slot.state(), has_room) {
            return;
        }
        if cfg!(debug_assertions) {
            let (live, state) = (slot.has_live(), slot.state());
            assert!(
                state.has(Flag::TRACKED | Flag::STUCK | Flag::UNBORN) || !live,
                "a file enters the log without live records, or with all of its content: {state:?}"
            );
        }
        slot.clear(Flag::LOG_FULL);
        slot.set(Flag::TRACKED);
    }

    /// Takes the file out of the log. `sync` is a real fdatasync of it, which is needed if the file has live records.
    ///
    /// If the sync fails, the records stay and the file becomes [`Flag::FAILED`]. The same happens if a sync failed
    /// before: the kernel dropped the pages, and an error is never retried into success.
    pub(crate) fn leave(&self, store: &Store, why: Flag, sync: impl FnOnce() -> Result<(), Errno>) {
        let slot = self.slot();
        slot.forget_solid();
        self.retire(store, sync);
        slot.set(why);
        if slot.clear(Flag::TRACKED).has(Flag::TRACKED) {
            slot.left().fetch_add(1, Relaxed);
        }
        slot.raise_epoch();
        // This also deals with what a lost holder left behind.
        self.settled();
        self.assert_out();
    }

    /// The LSN up to which a real sync that begins now retires the file's records. A holder that lost the lock alive
    /// may log another record when it goes on, and that one must not come back either: such a file never returns to the
    /// log.
    pub(crate) fn retires(&self) -> u64 {
        if self.slot().state().has(Flag::STUCK) { FOREVER } else { self.slot().last_lsn() }
    }

    /// Retires the file's live records: a real fdatasync, and then its watermark is raised.
    pub(crate) fn retire(&self, store: &Store, sync: impl FnOnce() -> Result<(), Errno>) {
        let slot = self.slot();
        let last = self.retires();
        if last <= slot.watermark() && !slot.state().has(Flag::UNBORN) {
            return;
        }
        match sync() {
            // Another sync got an error, before or meanwhile: the success of this one proves nothing.
            Ok(()) if slot.state().has(Flag::FAILED) => {}
            Ok(()) if slot.raise_watermark(store, last.max(BORN)).is_ok() => {}
            _ => {
                slot.set(Flag::FAILED);
            }
        }
    }

    /// The database removed the file. False if its removal cannot be left to the log, which must have a record that the
    /// file is empty.
    pub(crate) fn vanish(&self) -> bool {
        let slot = self.slot();
        let state = slot.state();
        let is_logged = state.is_absorbed() && !state.has(Flag::NEVER_TRACK);
        if is_logged {
            slot.set(Flag::ABSENT);
        }
        is_logged
    }

    /// The database makes the file again. False if it had not removed the file, or if it was removed for good
    /// meanwhile.
    pub(crate) fn appear(&self) -> bool {
        let slot = self.slot();
        !slot.state().has(Flag::UNLINKED) && slot.clear(Flag::ABSENT).has(Flag::ABSENT)
    }

    /// A file that is out of the log has no live records, unless they could not be retired.
    fn assert_out(&self) {
        if cfg!(debug_assertions) {
            let (live, state) = (self.slot().has_live(), self.slot().state());
            assert!(
                state.has(Flag::FAILED | Flag::STUCK) || !state.has(Flag::TRACKED) && !live,
                "a file that is out of the log has no live records: {state:?}, {live}"
            );
        }
    }
}

/// Syncs.
impl Inside<'_> {
    /// What a real sync that begins now covers; names only if `names`.
    pub(crate) fn covered(&self, names: bool) -> Covered {
        let slot = self.slot();
        Covered {
            last: slot.last_lsn(),
            epoch: slot.epoch().load(Acquire),
            names: if names { slot.renames() } else { 0 },
        }
    }

    /// A real sync succeeded. If another one failed meanwhile, this success proves nothing.
    ///
    /// # Errors
    /// If records could not be retired, the sync is not acknowledged.
    pub(crate) fn synced(&self, store: &Store, covered: &Covered, has_room: bool) -> Result<(), Errno> {
        let slot = self.slot();
        if slot.state().has(Flag::FAILED) {
            return Ok(());
        }
        if covered.last > slot.watermark() || slot.state().has(Flag::UNBORN) {
            slot.raise_watermark(store, covered.last.max(BORN)).inspect_err(|_| slot.distrust())?;
        }
        self.named(covered.names);
        if self.is_changed_since(covered) {
            return Ok(());
        }
        slot.clear(Flag::SYNC_NEEDED);
        self.track(has_room);
        Ok(())
    }

    /// True if the file was changed outside the log since a sync of it began.
    pub(crate) fn is_changed_since(&self, covered: &Covered) -> bool {
        self.slot().epoch().load(Acquire) != covered.epoch
    }

    /// This many of its renames are durable.
    pub(crate) fn named(&self, renames: u64) {
        let slot = self.slot();
        debug_assert!(renames <= slot.renames(), "no more of its names are durable than it has had");
        slot.durable_names().fetch_max(renames, SeqCst);
    }
}

/// Stores.
impl Inside<'_> {
    /// A store into a mapping cannot fail in this many bytes from the file's start; returns the former value. It is
    /// known only for a file that is in the log.
    #[cfg(feature = "std")]
    pub(crate) fn measured(&self, solid: u64) -> u64 {
        // A holder that lost the lock meanwhile finds the file out of the log.
        let may_be_stored = self.slot().state().has(Flag::TRACKED | Flag::STUCK);
        debug_assert!(may_be_stored, "only a file in the log is stored into");
        self.slot().solid_bytes().swap(solid, SeqCst)
    }

    /// The file is cut: the part behind its new end is no longer solid.
    #[inline]
    pub(crate) fn is_cut(&self, len: u64) {
        self.slot().solid_bytes().fetch_min(len, SeqCst);
    }

    /// Its times were moved for all stores that had been noted.
    #[cfg(feature = "std")]
    pub(crate) fn times_are_moved(&self) {
        self.slot().clear(Flag::STORED);
    }
}

/// Directories.
impl Inside<'_> {
    /// Everything that has happened in the directory up to this change of it is in the log, or on disk. 0: that is not
    /// known.
    pub(crate) fn is_known_up_to(&self, changed: u64) {
        self.slot().known_change().store(changed, SeqCst);
    }

    /// The record with this LSN contains all of a file.
    pub(crate) fn has_content(&self, lsn: u64) {
        self.slot().newest_content().store(lsn, SeqCst);
    }

    /// The record with this LSN says that a file got a name in another directory.
    pub(crate) fn links_out(&self, lsn: u64) {
        self.slot().linked_out().store(lsn, SeqCst);
    }
}

/// Holds.
impl Inside<'_> {
    /// One more mapping, stream or io_uring keeps it out of the log.
    pub(crate) fn is_held(&self) {
        self.assert_out();
        self.slot().sticky().fetch_add(1, SeqCst);
    }

    /// It has this many holds. They were counted, because a process that died may have been in the middle of a step. A
    /// sync that began earlier does not cover what the dead process wrote.
    #[cfg(feature = "std")]
    pub(crate) fn holds_are(&self, count: u32) {
        self.slot().raise_epoch();
        self.slot().sticky().store(count, SeqCst);
    }
}

impl Slot<'_> {
    /// One of its holds is over. A sync that began earlier does not cover what was written through it.
    pub(crate) fn hold_ends(self) {
        self.raise_epoch();
        let before = self.sticky().fetch_sub(1, SeqCst);
        debug_assert!(before > 0, "no more holds end than there were");
    }

    /// There is nobody who would end a hold: the file stays out for good.
    pub(crate) fn is_held_for_good(self) {
        self.set(Flag::STUCK | Flag::SYNC_NEEDED);
    }

    /// True if only bytes that are not durable yet keep a file in this state out of the log. A file that left because
    /// the log was full waits until there is room.
    pub(crate) fn may_track(self, state: State, has_room: bool) -> bool {
        let held = self.holds() != 0;
        !held && !state.has(Flag::NEVER_TRACK) && (has_room || !state.has(Flag::LOG_FULL))
    }
}
