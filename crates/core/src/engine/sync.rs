//! fsync and fdatasync, and everything that takes a file out of the log.

use core::sync::atomic::Ordering::SeqCst;

use seawall_stats::{Event, ticks};

use super::name::is_name_due;
use super::{Engine, Entering, Scope};
use crate::file::{Covered, FileRef, Flag, Inside, KeptOut, Slot};
use crate::journal::Journal;
use crate::{Errno, Owner};

impl Engine {
    /// An fsync of a caller who has a real one and nothing else: [`sync_scope`](Self::sync_scope).
    ///
    /// # Errors
    /// As there.
    pub fn sync(
        &self,
        who: Owner,
        file: FileRef,
        mut real: impl FnMut() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        self.sync_scope(who, file, Scope::Whole, |_| real(), || Ok(false))
    }

    /// An fsync or fdatasync: absorbed when every write of the file is in the log already, else `real` is called
    /// and its success retires the file's records before it is passed on. `real` may be asked for more than the
    /// caller wants, and twice. If nothing is missing but the file's name, `name` is called, which may make it durable
    /// ([`sync_directory`](Self::sync_directory)), or say that it cannot.
    ///
    /// # Errors
    /// What `real` or `name` said; EIO for a file whose records could neither be retired nor may be trusted to be
    /// on disk ([`Flag::FAILED`]).
    #[inline]
    pub fn sync_scope(
        &self,
        who: Owner,
        file: FileRef,
        scope: Scope,
        mut real: impl FnMut(Scope) -> Result<(), Errno>,
        name: impl FnOnce() -> Result<bool, Errno>,
    ) -> Result<(), Errno> {
        let Some(slot) = self.file(file) else { return real(scope) };
        // Known after the look at its state, too: that was not the one of the slot's next file.
        if slot.state().is_absorbed() && self.knows(file) {
            match self.log.pool.journal().map_or(Ok(()), |journal| self.hardened(who, journal, slot)) {
                Ok(()) if !is_name_due(slot, scope) => {
                    slot.count_absorbed();
                    return Ok(());
                }
                Ok(()) => {
                    if let Some(done) = self.sync_name(who, file, slot, name) {
                        return done;
                    }
                }
                Err(Errno::NOSPC) => return self.sync_without_room(who, file, || real(scope)),
                Err(error) => return Err(error),
            }
        }
        self.sync_real(who, file, scope, real)
    }

    /// True if a sync of the file would wait for no disk of its own.
    pub fn absorbs(&self, file: FileRef, scope: Scope) -> bool {
        self.file(file).is_some_and(|slot| slot.state().is_absorbed() && !is_name_due(slot, scope))
    }

    /// Waits until every record of the file is on the journal's device, or on the file's own disk.
    fn hardened(&self, who: Owner, journal: &Journal, slot: Slot<'_>) -> Result<(), Errno> {
        let last = slot.last_lsn();
        if last <= slot.watermark() {
            return Ok(());
        }
        let start = ticks();
        let spent = journal.harden(&self.log, last).inspect_err(|_| self.ring())?;
        if let Some(spent) = spent {
            self.waited(who, slot.class(), self.since(start), self.ns(spent));
        }
        Ok(())
    }

    /// Waits until everything that was written to the log is on the medium: before something of which the log
    /// knows nothing makes published data durable (sync, syncfs).
    ///
    /// # Errors
    /// As for [`sync`](Self::sync); ENOSPC if the journal is full.
    pub fn harden_all(&self) -> Result<(), Errno> {
        let newest = || self.log.shm.header().next_lsn().load(SeqCst) - 1;
        self.log.pool.journal().map_or(Ok(()), |journal| journal.harden(&self.log, newest()).map(drop))
    }

    /// True while a thread of this process leads: it writes by the descriptor that it found.
    pub fn leads_here(&self) -> bool {
        self.log.pool.journal().is_some_and(|journal| journal.is_led_by_us(&self.log.pool))
    }

    /// No room in the journal: as with a full log the file leaves it, and the disk has to do.
    #[cold]
    fn sync_without_room(
        &self,
        who: Owner,
        file: FileRef,
        real: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let inside = match self.enter(who, file) {
            Entering::Alone(inside) => inside,
            Entering::Nested(_) => return Err(Errno::NOSPC),
            Entering::Gone => return real(),
        };
        let done = self.sync_and_leave(&inside, Flag::LOG_FULL, real);
        inside.slot().count_real_sync();
        done
    }

    /// A real sync with which the file leaves the log. What could not be retired is not acknowledged.
    fn sync_and_leave(
        &self,
        inside: &Inside<'_>,
        why: Flag,
        real: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let done = real();
        inside.leave(self.pool(), why, || done);
        inside.settled();
        done?;
        if inside.slot().state().has(Flag::FAILED) { Err(Errno::IO) } else { Ok(()) }
    }

    /// A signal handler syncs the file that its own thread is changing. What the kernel makes durable must not be
    /// rolled back by older records, so the newer ones have to be durable as well.
    #[cold]
    fn sync_nested(
        &self,
        who: Owner,
        slot: Slot<'_>,
        real: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        real()?;
        self.log.pool.journal().map_or(Ok(()), |journal| self.hardened(who, journal, slot))
    }

    #[cold]
    fn sync_real(
        &self,
        who: Owner,
        file: FileRef,
        scope: Scope,
        mut real: impl FnMut(Scope) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let start = ticks();
        let inside = match self.enter(who, file) {
            Entering::Alone(inside) => inside,
            Entering::Nested(slot) => return self.sync_nested(who, slot, || real(scope)),
            Entering::Gone => return real(scope),
        };
        let state = inside.slot().state();
        if state.has(Flag::FAILED) {
            return Err(Errno::IO);
        }
        // What is needed may be a link or an attribute, which fdatasync leaves out.
        let scope = if state.has(Flag::SYNC_NEEDED) { Scope::Whole } else { scope };
        let mut real = || real(scope);
        if inside.inherited() {
            self.sync_and_leave(&inside, Flag::NONE, real)?;
            self.rejoin(&inside, || Ok(()));
            return Ok(());
        }
        let covered = inside.covered(scope == Scope::Whole);
        inside.slot().count_real_sync();
        drop(inside);
        let mut done = real();
        let inside = match self.enter(who, file) {
            Entering::Alone(inside) => inside,
            Entering::Nested(slot) => return self.sync_nested(who, slot, || done),
            Entering::Gone => return done,
        };
        self.was_synced(&inside, &covered, done)?;
        if done.is_ok() && !inside.inherited() && self.is_kept_out(&inside, &covered) {
            let covered = inside.covered(scope == Scope::Whole);
            done = real();
            inside.slot().count_real_sync();
            self.was_synced(&inside, &covered, done)?;
        }
        self.record(who, Event::SyncReal, inside.slot().class(), self.since(start));
        done
    }

    /// True for a file for which there is room again, and which others wrote during a real sync. Where they always do, it
    /// would never come back: they wait for another sync, which has no more to write than what came meanwhile.
    fn is_kept_out(&self, inside: &Inside<'_>, covered: &Covered) -> bool {
        let state = inside.slot().state();
        let is_out = state.has(Flag::LOG_FULL) && !state.has(Flag::TRACKED);
        is_out && inside.is_changed_since(covered) && inside.slot().may_track(state, self.has_room())
    }

    fn was_synced(
        &self,
        inside: &Inside<'_>,
        covered: &Covered,
        done: Result<(), Errno>,
    ) -> Result<(), Errno> {
        match done {
            Ok(()) => inside.synced(self.pool(), covered, self.has_room()),
            Err(e) => {
                inside.slot().sync_failed(e);
                Ok(())
            }
        }
    }

    /// Whatever else changes the file's content (fallocate, sendfile, splice, reflinks): the file leaves the
    /// log first, then `op` runs with its lock held. `retire` is a real fdatasync of the file.
    pub fn pass<R>(
        &self,
        who: Owner,
        file: FileRef,
        retire: impl Fn() -> Result<(), Errno>,
        op: impl FnOnce() -> R,
    ) -> R {
        let inside = match self.enter(who, file) {
            Entering::Alone(inside) => inside,
            Entering::Nested(slot) => {
                slot.disturb();
                return op();
            }
            Entering::Gone => return op(),
        };
        inside.leave(self.pool(), Flag::NONE, &retire);
        inside.settled();
        let result = op();
        inside.was_changed();
        self.rejoin(&inside, retire);
        result
    }

    /// The removal of a file's last name: like [`pass`](Self::pass), and then the slot may be forgotten.
    ///
    /// # Errors
    /// What `op` said; then the file keeps its slot.
    pub fn unlink(
        &self,
        who: Owner,
        file: FileRef,
        retire: impl Fn() -> Result<(), Errno>,
        op: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        // Marked before the lock is free: between the two another process's fsync could take the file, now
        // without a name, back into the log.
        let remove = || op().inspect(|()| self.keep_out(file, KeptOut::Unlinked));
        let done = self.pass(who, file, retire, remove);
        if done.is_ok() {
            self.ring();
        }
        done
    }

    /// A change of the file's owner: like [`pass`](Self::pass), and then the file stays out of the log, since
    /// recovery writes no file that belongs to somebody else than its directory's registered owner.
    ///
    /// # Errors
    /// What `op` said; then the file may return to the log.
    pub fn give_away<E>(
        &self,
        who: Owner,
        file: FileRef,
        retire: impl Fn() -> Result<(), Errno>,
        op: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        self.pass(who, file, retire, || op().inspect(|()| self.keep_out(file, KeptOut::GivenAway)))
    }
}
