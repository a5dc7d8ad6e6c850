//! fsync and fdatasync.
//!
//! ```text
//! let mut sync = engine.sync(who, file, scope);
//! loop {
//!     sync = match sync {
//!         Syncing::Done(done) => return done,
//!         Syncing::Name(due) => due.synced(…),          the name alone: a sync of the directory, if the caller can
//!         Syncing::Real(due) => due.synced(…),          fsync(2) or fdatasync(2), as due.scope() says
//!     }
//! }
//! ```
//!
//! A file whose every write is in the log needs neither; on a block device the call waits until its records are
//! hardened. A real sync may be wider than the caller wants, and is asked for twice where others keep the file out of
//! the log.

use core::sync::atomic::Ordering::SeqCst;

use rustix::io::Errno;
use seawall_stats::{Event, ticks};

use super::attach::Engine;
use super::enter::Entering;
use super::name::is_name_due;
use super::scope::Scope;
use crate::Owner;
use crate::file::{Covered, FileRef, Flag, Inside, Slot};
use crate::journal::Unhardened;
use crate::persist::was_first;

/// A sync under way: what it needs of its caller next.
#[must_use = "nothing is durable before it is done"]
pub enum Syncing<'e> {
    /// Nothing. EIO for a file whose records could neither be retired nor may be trusted to be on disk
    /// ([`Flag::FAILED`]), and once the log's device failed; otherwise the caller's own result.
    Done(Result<(), Errno>),
    /// The file's name, and not its data.
    Name(NameDue<'e>),
    /// All of the file.
    Real(RealDue<'e>),
}

/// Everything about a file is in the log but its name.
pub struct NameDue<'e> {
    call: Call<'e>,
    slot: Slot<'e>,
    scope: Scope,
    start: u64,
    /// The renames covered by a sync of the directory that begins now.
    renames: u64,
}

/// A real sync that is due.
pub struct RealDue<'e> {
    call: Call<'e>,
    scope: Scope,
    course: Course<'e>,
}

/// Whose sync it is.
#[derive(Clone, Copy)]
struct Call<'e> {
    engine: &'e Engine,
    who: Owner,
    file: FileRef,
}

/// The purpose of a real sync.
enum Course<'e> {
    /// The file is the kernel's, and the log knows nothing of it.
    Kernel,
    /// A signal handler syncs the file that its own thread is changing.
    Nested(Slot<'e>),
    /// The file leaves the log with it.
    Leaving { inside: Inside<'e>, why: Flag },
    /// It may return to the log with it. Others may change it meanwhile.
    Beside { covered: Covered, start: u64 },
    /// The same, and they may not.
    Alone { inside: Inside<'e>, covered: Covered, start: u64 },
}

impl Engine {
    /// Begins an fsync or fdatasync.
    #[inline]
    pub fn sync(&self, who: Owner, file: FileRef, scope: Scope) -> Syncing<'_> {
        let call = Call { engine: self, who, file };
        let Some(slot) = self.file(file) else { return call.real(scope, Course::Kernel) };
        // Checked after reading the state, too: otherwise that state could belong to the slot's next file.
        let state = slot.state();
        if !state.is_absorbed() || !self.knows(file) {
            return call.begin_real(scope);
        }
        let hardened = if was_first(state) { Ok(()) } else { self.harden(who, slot) };
        match hardened {
            Ok(()) if !is_name_due(slot, scope) => {
                slot.count_absorbed();
                Syncing::Done(Ok(()))
            }
            Ok(()) => Syncing::Name(NameDue { call, slot, scope, start: ticks(), renames: slot.renames() }),
            Err(Unhardened::Full) => call.leave_full_journal(scope),
            Err(why) => Syncing::Done(Err(why.into())),
        }
    }

    /// True if a sync of the file would not wait for the file's own disk.
    pub fn absorbs(&self, file: FileRef, scope: Scope) -> bool {
        self.file(file).is_some_and(|slot| slot.state().is_absorbed() && !is_name_due(slot, scope))
    }

    /// Waits until every record of the file is on the journal's device, or on the file's own disk. Without a journal they
    /// are durable already.
    #[inline]
    pub(super) fn harden(&self, who: Owner, slot: Slot<'_>) -> Result<(), Unhardened> {
        let Some(journal) = self.log.pool.journal() else { return Ok(()) };
        let last = slot.last_lsn();
        if last <= slot.watermark() {
            return Ok(());
        }
        let start = ticks();
        let spent = journal.harden(&self.log, last).inspect_err(|_| self.wake_daemon())?;
        if let Some(spent) = spent {
            self.waited(who, slot.class(), self.since(start), self.ns(spent));
        }
        Ok(())
    }

    /// Waits until everything that was written to the log is on the medium: call this before an operation that the log
    /// does not know makes published data durable (sync, syncfs).
    ///
    /// # Errors
    /// EIO if the journal's device failed or is out of reach, ENOSPC if the journal is full.
    pub fn harden_all(&self) -> Result<(), Errno> {
        let Some(journal) = self.log.pool.journal() else { return Ok(()) };
        let newest = self.log.shm.header().next_lsn().load(SeqCst) - 1;
        Ok(journal.harden(&self.log, newest).map(drop)?)
    }

    /// Leads for processes that do not reach the copies of the log, while `goes_on` says so.
    #[cfg(feature = "std")]
    pub fn lead_for_others(&self, goes_on: impl Fn() -> bool) {
        if let Some(journal) = self.log.pool.journal() {
            journal.lead_for_others(&self.log, goes_on);
        }
    }

    /// True while a thread of this process leads: it writes through the descriptor that it found.
    pub fn leads_here(&self) -> bool {
        self.log.pool.journal().is_some_and(|journal| journal.is_led_by_us(&self.log.pool))
    }
}

impl<'e> Syncing<'e> {
    /// Runs the sync to its end, for a caller who can sync all of the file and nothing else.
    ///
    /// # Errors
    /// As for [`Syncing::Done`].
    pub fn by(mut self, mut real: impl FnMut(Scope) -> Result<(), Errno>) -> Result<(), Errno> {
        loop {
            self = match self {
                Self::Done(done) => return done,
                Self::Name(due) => due.synced(Ok(false)),
                Self::Real(due) => {
                    let done = real(due.scope());
                    due.synced(done)
                }
            }
        }
    }
}

impl<'e> Call<'e> {
    fn real(self, scope: Scope, course: Course<'e>) -> Syncing<'e> {
        Syncing::Real(RealDue { call: self, scope, course })
    }

    /// No room in the journal: as with a full log, the file leaves it, and the disk has to do.
    #[cold]
    fn leave_full_journal(self, scope: Scope) -> Syncing<'e> {
        match self.engine.enter(self.who, self.file) {
            Entering::Alone(inside) => self.real(scope, Course::Leaving { inside, why: Flag::LOG_FULL }),
            Entering::Nested(_) => Syncing::Done(Err(Errno::NOSPC)),
            Entering::Gone => self.real(scope, Course::Kernel),
        }
    }

    #[cold]
    fn begin_real(self, scope: Scope) -> Syncing<'e> {
        let start = ticks();
        let inside = match self.engine.enter(self.who, self.file) {
            Entering::Alone(inside) => inside,
            Entering::Nested(slot) => return self.real(scope, Course::Nested(slot)),
            Entering::Gone => return self.real(scope, Course::Kernel),
        };
        let state = inside.slot().state();
        if state.has(Flag::FAILED) {
            return Syncing::Done(Err(Errno::IO));
        }
        // A link or an attribute may be the reason, and fdatasync leaves those out.
        let scope = if state.has(Flag::SYNC_NEEDED) { Scope::Whole } else { scope };
        if inside.inherited() {
            return self.real(scope, Course::Leaving { inside, why: Flag::NONE });
        }
        let covered = inside.covered(scope == Scope::Whole);
        inside.slot().count_real_sync();
        drop(inside);
        self.real(scope, Course::Beside { covered, start })
    }

    /// Older records must not roll back what the kernel makes durable, so the newer ones have to be durable as well.
    #[cold]
    fn nested(self, slot: Slot<'_>, done: Result<(), Errno>) -> Syncing<'e> {
        let harden = |()| self.engine.harden(self.who, slot).map_err(Errno::from);
        Syncing::Done(done.and_then(harden))
    }

    /// A sync whose records could not be retired is not acknowledged.
    fn left(self, inside: &Inside<'_>, why: Flag, done: Result<(), Errno>) -> Syncing<'e> {
        let engine = self.engine;
        inside.slot().count_real_sync();
        inside.leave(engine.pool(), why, || done);
        if done.is_ok() && inside.slot().state().has(Flag::FAILED) {
            return Syncing::Done(Err(Errno::IO));
        }
        if done.is_ok() && why == Flag::NONE {
            engine.rejoin(inside, || Ok(()));
        }
        Syncing::Done(done)
    }

    /// A real sync is over, for which others did not wait.
    fn synced_beside(
        self,
        scope: Scope,
        (covered, start): (&Covered, u64),
        done: Result<(), Errno>,
    ) -> Syncing<'e> {
        let inside = match self.engine.enter(self.who, self.file) {
            Entering::Alone(inside) => inside,
            Entering::Nested(slot) => return self.nested(slot, done),
            Entering::Gone => return Syncing::Done(done),
        };
        if let Err(error) = self.note(&inside, covered, done) {
            return Syncing::Done(Err(error));
        }
        if done.is_ok() && !inside.inherited() && self.is_kept_out(&inside, covered) {
            let covered = inside.covered(scope == Scope::Whole);
            inside.slot().count_real_sync();
            return self.real(scope, Course::Alone { inside, covered, start });
        }
        self.over(inside.slot(), start, done)
    }

    /// A real sync is over, for which others waited.
    fn synced_alone(
        self,
        inside: &Inside<'_>,
        (covered, start): (&Covered, u64),
        done: Result<(), Errno>,
    ) -> Syncing<'e> {
        match self.note(inside, covered, done) {
            Ok(()) => self.over(inside.slot(), start, done),
            Err(error) => Syncing::Done(Err(error)),
        }
    }

    fn note(self, inside: &Inside<'_>, covered: &Covered, done: Result<(), Errno>) -> Result<(), Errno> {
        match done {
            Ok(()) => inside.synced(self.engine.pool(), covered, self.engine.has_room()),
            Err(error) => {
                inside.slot().sync_failed(error);
                Ok(())
            }
        }
    }

    /// True for a file that could come back because there is room again, but was written by others during a real sync.
    /// If they always do that, it would never come back: so they wait for another sync, which only has to write what
    /// came meanwhile.
    fn is_kept_out(self, inside: &Inside<'_>, covered: &Covered) -> bool {
        let state = inside.slot().state();
        let is_out = state.has(Flag::LOG_FULL) && !state.has(Flag::TRACKED);
        is_out && inside.is_changed_since(covered) && inside.slot().may_track(state, self.engine.has_room())
    }

    fn over(self, slot: Slot<'_>, start: u64, done: Result<(), Errno>) -> Syncing<'e> {
        self.engine.record(self.who, Event::SyncReal, slot.class(), self.engine.since(start));
        Syncing::Done(done)
    }
}

impl<'e> NameDue<'e> {
    /// Takes the result of a sync of its directory. `Ok(false)`: the caller cannot make the name durable.
    #[cold]
    pub fn synced(self, done: Result<bool, Errno>) -> Syncing<'e> {
        let Self { call, slot, scope, start, renames } = self;
        let done = match done {
            Ok(false) => return call.begin_real(scope),
            done => done.map(drop),
        };
        slot.count_real_sync();
        // While the lock is held, the slot stays this file's. A signal handler that interrupted the holder leaves it to
        // the next sync.
        if let Entering::Alone(inside) = call.engine.enter(call.who, call.file) {
            match done {
                Ok(()) => inside.named(renames),
                Err(error) => slot.sync_failed(error),
            }
        }
        call.over(slot, start, done)
    }
}

impl<'e> RealDue<'e> {
    /// What has to be made durable.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Takes the kernel's answer.
    pub fn synced(self, done: Result<(), Errno>) -> Syncing<'e> {
        let Self { call, scope, course } = self;
        match course {
            Course::Kernel => Syncing::Done(done),
            Course::Nested(slot) => call.nested(slot, done),
            Course::Leaving { inside, why } => call.left(&inside, why, done),
            Course::Beside { covered, start } => call.synced_beside(scope, (&covered, start), done),
            Course::Alone { inside, covered, start } => call.synced_alone(&inside, (&covered, start), done),
        }
    }
}
