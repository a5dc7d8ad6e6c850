//! fsync and fdatasync, and everything that takes a file out of the log.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use seawall_stats::{Event, ticks};
use seawall_wire::shm::{File, Flag};

use super::name::is_name_due;
use super::timing::class;
use super::{Engine, FileRef, Scope, distrust, track};
use crate::journal::Journal;
use crate::lock::{self, Entry, Guard};
use crate::{Errno, Owner, persist};

/// What a real sync will have covered.
struct Covered {
    last: u64,
    epoch: u64,
    names: u64,
}

impl Covered {
    /// One that begins now, with the file's lock held.
    fn by_sync_of(f: File<'_>, scope: Scope) -> Self {
        Self {
            last: f.last_lsn().load(Acquire),
            epoch: f.epoch().load(Acquire),
            names: if scope == Scope::Whole { f.names().load(SeqCst) } else { 0 },
        }
    }
}

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
        let Some(f) = self.file(file) else { return real(scope) };
        // Known after the look at its flags, too: they were not those of the slot's next file.
        if is_absorbed(f.flags().load(Acquire)) && self.knows(file) {
            match self.log.pool.journal().map_or(Ok(()), |journal| self.hardened(who, journal, f)) {
                Ok(()) if !is_name_due(f, scope) => return absorbed(f),
                Ok(()) => {
                    if let Some(done) = self.sync_name(who, file, f, name) {
                        return done;
                    }
                }
                Err(Errno::NOSPC) => return self.sync_without_room(who, file, f, || real(scope)),
                Err(error) => return Err(error),
            }
        }
        self.sync_real(who, file, f, scope, real)
    }

    /// True if a sync of the file would wait for no disk of its own.
    pub fn absorbs(&self, file: FileRef, scope: Scope) -> bool {
        self.file(file).is_some_and(|f| is_absorbed(f.flags().load(Acquire)) && !is_name_due(f, scope))
    }

    /// Waits until every record of the file is on the journal's device, or on the file's own disk.
    fn hardened(&self, who: Owner, journal: &Journal, f: File<'_>) -> Result<(), Errno> {
        let last = f.last_lsn().load(Acquire);
        if last <= f.watermark().load(Acquire) {
            return Ok(());
        }
        let start = ticks();
        let spent = journal.harden(&self.log, last).inspect_err(|_| self.ring())?;
        if let Some(spent) = spent {
            self.waited(who, class(f), self.since(start), self.ns(spent));
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
        f: File<'_>,
        real: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let Entry::Alone(guard) = lock::enter(self.shm(), f, who) else { return Err(Errno::NOSPC) };
        if !self.knows(file) {
            return real();
        }
        let done = self.sync_and_leave(file.slot, f, &guard, Flag::LOG_FULL, real);
        f.real_syncs().fetch_add(1, Relaxed);
        done
    }

    /// A real sync with which the file leaves the log. What could not be retired is not acknowledged.
    fn sync_and_leave(
        &self,
        slot: u32,
        f: File<'_>,
        guard: &Guard<'_>,
        why: Flag,
        real: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let done = real();
        self.leave(slot, f, why, || done);
        guard.settled();
        done?;
        if Flag::FAILED.any_in(f.flags().load(Acquire)) { Err(Errno::IO) } else { Ok(()) }
    }

    /// A signal handler syncs the file that its own thread is changing. What the kernel makes durable must not be
    /// rolled back by older records, so the newer ones have to be durable as well.
    #[cold]
    fn sync_nested(
        &self,
        who: Owner,
        f: File<'_>,
        real: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        real()?;
        self.log.pool.journal().map_or(Ok(()), |journal| self.hardened(who, journal, f))
    }

    #[cold]
    fn sync_real(
        &self,
        who: Owner,
        file: FileRef,
        f: File<'_>,
        scope: Scope,
        mut real: impl FnMut(Scope) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let start = ticks();
        let Entry::Alone(guard) = lock::enter(self.shm(), f, who) else {
            return self.sync_nested(who, f, || real(scope));
        };
        if !self.knows(file) {
            return real(scope);
        }
        let flags = f.flags().load(Acquire);
        if Flag::FAILED.any_in(flags) {
            return Err(Errno::IO);
        }
        // What is needed may be a link or an attribute, which fdatasync leaves out.
        let scope = if Flag::SYNC_NEEDED.any_in(flags) { Scope::Whole } else { scope };
        let mut real = || real(scope);
        if guard.inherited() {
            self.sync_and_leave(file.slot, f, &guard, Flag(0), real)?;
            self.rejoin(f, || Ok(()));
            return Ok(());
        }
        let covered = Covered::by_sync_of(f, scope);
        drop(guard);
        let mut done = real();
        f.real_syncs().fetch_add(1, Relaxed);
        let Entry::Alone(guard) = lock::enter(self.shm(), f, who) else {
            return self.sync_nested(who, f, || done);
        };
        if !self.knows(file) {
            return done;
        }
        self.was_synced(file.slot, f, &covered, done)?;
        if done.is_ok() && !guard.inherited() && self.is_kept_out(f, &covered) {
            let covered = Covered::by_sync_of(f, scope);
            done = real();
            f.real_syncs().fetch_add(1, Relaxed);
            self.was_synced(file.slot, f, &covered, done)?;
        }
        self.record(who, Event::SyncReal, class(f), self.since(start));
        done
    }

    /// True for a file for which there is room again, and which others wrote during a real sync. Where they always do, it
    /// would never come back: they wait for another sync, which has no more to write than what came meanwhile.
    fn is_kept_out(&self, f: File<'_>, covered: &Covered) -> bool {
        let flags = f.flags().load(Acquire);
        let is_out = Flag::LOG_FULL.any_in(flags) && !Flag::TRACKED.any_in(flags);
        is_out && f.epoch().load(Acquire) != covered.epoch && self.may_track(f, flags)
    }

    fn was_synced(
        &self,
        slot: u32,
        f: File<'_>,
        covered: &Covered,
        done: Result<(), Errno>,
    ) -> Result<(), Errno> {
        match done {
            Ok(()) => self.synced(slot, f, covered)?,
            Err(e) => failed(f, e),
        }
        Ok(())
    }

    /// A real sync succeeded; the file's lock is held. If another one failed meanwhile, this success proves
    /// nothing. What could not be retired is not acknowledged.
    fn synced(&self, slot: u32, f: File<'_>, covered: &Covered) -> Result<(), Errno> {
        if Flag::FAILED.any_in(f.flags().load(Acquire)) {
            return Ok(());
        }
        if covered.last > f.watermark().load(Acquire) {
            persist::watermark(&self.log.pool, slot, f, covered.last).inspect_err(|_| distrust(f))?;
        }
        f.durable_names().fetch_max(covered.names, SeqCst);
        if f.epoch().load(Acquire) != covered.epoch {
            return Ok(());
        }
        let flags = f.flags().fetch_and(!Flag::SYNC_NEEDED.0, SeqCst);
        if self.may_track(f, flags) {
            track(f);
        }
        Ok(())
    }

    /// True if nothing keeps a file of these flags out of the log but what is not durable yet.
    pub(super) fn may_track(&self, f: File<'_>, flags: u32) -> bool {
        let held = f.sticky().load(Acquire) != 0;
        !held && !Flag::NEVER_TRACK.any_in(flags) && self.has_room(flags)
    }

    /// A file that left because the log was full comes back when a quarter of it is free, not sooner: each
    /// change of state costs a real sync.
    fn has_room(&self, flags: u32) -> bool {
        let free = self.shm().header().free_segments().load(Relaxed);
        let roomy = || self.log.pool.journal().is_none_or(|journal| journal.is_roomy(&self.log.pool));
        !Flag::LOG_FULL.any_in(flags) || (free >= self.log.layout.segments / 4 && roomy())
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
        let Some(f) = self.file(file) else { return op() };
        let Entry::Alone(guard) = lock::enter(self.shm(), f, who) else {
            f.disturb();
            return op();
        };
        self.leave(file.slot, f, Flag(0), &retire);
        guard.settled();
        let result = op();
        f.epoch().fetch_add(1, SeqCst);
        self.rejoin(f, retire);
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
        let remove = || op().inspect(|()| self.set_flag(file, Flag::UNLINKED));
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
        self.pass(who, file, retire, || op().inspect(|()| self.set_flag(file, Flag::GIVEN_AWAY)))
    }
}

#[inline]
fn absorbed(f: File<'_>) -> Result<(), Errno> {
    f.absorbed().fetch_add(1, Relaxed);
    Ok(())
}

#[inline]
fn is_absorbed(flags: u32) -> bool {
    let not_now = Flag::SYNC_NEEDED | Flag::FAILED | Flag::STUCK;
    Flag::TRACKED.any_in(flags) && !not_now.any_in(flags)
}

/// A real sync failed. The kernel may have dropped the pages and will report success next time; a tracked
/// file's records still hold the data, so they stay, and the file is not believed again.
///
/// Not only EIO: a file system that allocates late drops pages on ENOSPC and EDQUOT too.
pub(super) fn failed(f: File<'_>, error: Errno) {
    f.disturb();
    let never_reached_the_disk = matches!(error, Errno::BADF | Errno::INTR | Errno::INVAL | Errno::NOSYS);
    if !never_reached_the_disk && Flag::TRACKED.any_in(f.flags().load(Acquire)) {
        f.flags().fetch_or(Flag::FAILED.0, SeqCst);
    }
}
