//! Names: changes in a directory that is in the log, and syncs of what was made there.
//!
//! ```text
//! let turn = engine.enter_directory(who, directory, &place);    nobody else changes its names until this is finished
//! let turn = turn.log(&change);                                  the record is durable; or the directory leaves the log
//! let done = …;                                                  the front's own call
//! turn.finish(…);
//! ```
//!
//! A directory is a managed file of its own kind: it has a slot, a lock, a watermark, and records, which are changes of
//! names ([`NameChange`]). Its states are a file's: it is untracked until a real fsync of it succeeds; then every
//! change of its names is a record, and an fsync of it has nothing left to do. A change that no record can express (a
//! file that came from a directory which is not in the log) takes it out of the log first, as with any other file.
//!
//! | change | its record is made | why |
//! |---|---|---|
//! | a name goes, or leads elsewhere | before the change | the file system may make it durable at once: recovery must know by then that nothing was lost |
//! | a name is made | after it, before the call returns | only then is the file's identity known; a crash in between leaves a file that nobody was promised |
//!
//! A record is durable when it is made, or, on a log that lies on a disk or on other hosts, when the disk or those
//! hosts have it. There a call that takes a name away waits for that ([`NameChange::is_awaited`]), as a truncation of a
//! file does. A call that makes a name does not wait: its record is durable with the next sync. A program that takes
//! many names away and syncs nothing would wait for each of them and gain nothing: after [`UNSYNCED`] of them the
//! directory leaves the log.
//!
//! A small file that is synced for the first time is captured: all of it becomes a record of its directory, so neither
//! its inode nor its bytes wait for the disk. When such a file moves to another directory, or gets a name there, its
//! content goes into that directory's log first, so that a sync of a directory's names also makes durable what those names
//! lead to.
//!
//! The removal of one of a file's names is a record only if the log knows all of its names: a name that is not on the
//! disk yet would be lost with the removed one. And the last name to go is in the directory whose log has the content.
//!
//! A directory that fails keeps its records, and then no call changes its names: each fails with EIO. After a power cut
//! the records are replayed, and whatever came later would be mixed with what they say.
//!
//! What may not be trusted: that every change comes this way. Programs without Seawall and libc's own inner calls make
//! names too. The directory's change time shows it: the time is noted after each known change, and if it differs later,
//! the directory leaves the log. Two changes within one tick of the kernel's clock (10 ms at most; Linux 6.13 tells
//! them apart) look like one.

mod contents;
mod made;
mod moves;
mod outside;
mod syncing;
#[cfg(feature = "std")]
mod unborn;

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use rustix::io::Errno;
use seawall_media::fence;
use seawall_wire::shm::Preset;

use super::attach::Engine;
use super::enter::Entering;
use crate::Owner;
use crate::append::NewRecord;
use crate::file::{FileRef, Flag, Inside, Slot, Stand, captured};
use crate::format::{NameChange, RecordKind};
use crate::intake::Intake;
use crate::policy;
#[cfg(feature = "std")]
pub use unborn::{Entry, New};

/// How many changes of a directory may wait for a log on a disk or on other hosts without a sync in between.
pub const UNSYNCED: u64 = 4;

/// A directory as its front reaches it.
pub trait Place {
    /// Its change time a moment ago, when it was found; 0 if nobody read it.
    fn changed_before(&self) -> u64;

    /// Its change time, in nanoseconds since the epoch; 0 if it cannot be read.
    fn changed(&self) -> u64;

    /// Makes a real sync of it; with all files in it, if `with_files`.
    ///
    /// # Errors
    /// The disk's error.
    fn sync(&self, with_files: bool) -> Result<(), Errno>;

    /// Makes sure that a successful sync can be trusted ([`certain::check`](crate::certain::check)). Changes the
    /// directory's change time.
    ///
    /// # Errors
    /// The sync cannot be trusted.
    fn check(&self) -> Result<(), Errno>;
}

/// A directory whose names belong to the caller alone for now.
#[must_use = "nobody else changes the directory's names before this is finished"]
pub struct Turn<'e, P> {
    engine: &'e Engine,
    who: Owner,
    directory: FileRef,
    place: &'e P,
    /// `None`: the directory is no longer known, or this thread has entered it already, in a signal handler.
    inside: Option<Inside<'e>>,
}

impl Engine {
    /// Enters a directory. When this returns, unseen changes have taken it out of the log.
    pub fn enter_directory<'e, P: Place>(
        &'e self,
        who: Owner,
        directory: FileRef,
        place: &'e P,
    ) -> Turn<'e, P> {
        let inside = match self.enter(who, directory) {
            Entering::Alone(inside) => Some(inside),
            Entering::Nested(slot) => {
                slot.disturb();
                None
            }
            Entering::Gone => None,
        };
        self.entered(who, directory, place, inside)
    }

    /// The same if no wait is needed.
    pub fn try_enter_directory<'e, P: Place>(
        &'e self,
        who: Owner,
        directory: FileRef,
        place: &'e P,
    ) -> Option<Turn<'e, P>> {
        let inside = self.file(directory)?.try_enter(who).filter(|_| self.knows(directory))?;
        Some(self.entered(who, directory, place, Some(inside)))
    }

    fn entered<'e, P: Place>(
        &'e self,
        who: Owner,
        directory: FileRef,
        place: &'e P,
        inside: Option<Inside<'e>>,
    ) -> Turn<'e, P> {
        let turn = Turn { engine: self, who, directory, place, inside };
        if turn.inside.as_ref().is_some_and(Inside::inherited) {
            captured::give_up_in(self.shm(), directory.slot);
        }
        if let Some(inside) = &turn.inside
            && (inside.inherited() || turn.is_in_log() && !turn.is_known(inside))
        {
            turn.leave();
        }
        turn
    }

    /// The LSN that the next record gets: one that is made later has at least this.
    pub fn next_lsn(&self) -> u64 {
        self.shm().header().next_lsn().load(SeqCst)
    }

    /// True once a directory was registered.
    #[inline]
    pub fn has_directories(&self) -> bool {
        self.shm().header().directories().load(Relaxed) != 0
    }

    /// Changes when a directory enters the table, so that everybody finds it. A front reads this before it looks for a directory
    /// and after a change of a name in one that it did not find: if it differs, it looks again.
    #[inline]
    pub fn directories(&self) -> u32 {
        self.shm().header().directories().load(SeqCst)
    }

    /// A directory that everybody finds from now on, and nobody else is in, enters the log: `record` makes a record of each name
    /// in it. False from that: it leaves the log by a real sync.
    #[cfg(feature = "std")]
    pub(super) fn begin_directory<P: Place>(
        &self,
        (who, directory): (Owner, FileRef),
        place: &P,
        inside: Inside<'_>,
        record: impl FnOnce(&Turn<'_, P>) -> bool,
    ) {
        let changed = place.changed();
        inside.track(self.has_room());
        let turn = Turn { engine: self, who, directory, place, inside: Some(inside) };
        if !self.is_seen_by_all() || !record(&turn) || !turn.is_in_log() {
            turn.leave();
        }
        if let Some(inside) = &turn.inside {
            inside.is_known_up_to(if turn.is_in_log() { changed } else { 0 });
        }
    }

    /// How far the changes in a directory have come, for [`still_stands`](Turn::still_stands). `None` while one is under
    /// way.
    pub fn stand(&self, directory: FileRef) -> Option<Stand> {
        self.file(directory)?.stand()
    }

    /// Index of the root that the directory lies below.
    pub fn root_of(&self, directory: FileRef) -> Option<u32> {
        self.file(directory).map(Slot::root)
    }

    /// The preset that the directory belongs to.
    pub fn preset_of(&self, directory: FileRef) -> Option<Preset> {
        self.shm().root(self.file(directory)?.root())?.kind()
    }
}

impl<P: Place> Turn<'_, P> {
    /// True if nothing happened in it unseen.
    fn is_known(&self, inside: &Inside<'_>) -> bool {
        let slot = inside.slot();
        slot.is_known_at(self.place.changed_before()) || slot.is_known_at(self.place.changed())
    }

    /// How far the changes in the directory have come ([`Engine::stand`]).
    pub fn stand(&self) -> Option<Stand> {
        self.inside.as_ref().map(|inside| inside.slot().stand_inside())
    }

    /// True if no name has changed here since the directory stood like this.
    pub fn still_stands(&self, stand: Option<Stand>) -> bool {
        stand.is_some() && stand == self.stand()
    }

    /// True if a record of the change is what comes next.
    pub fn is_in_log(&self) -> bool {
        let state = self.inside.as_ref().map(|inside| inside.slot().state());
        state.is_some_and(|state| state.has(Flag::TRACKED) && !state.has(Flag::FAILED | Flag::STUCK))
    }

    /// A name may change here: to be asked before the kernel is.
    ///
    /// # Errors
    /// EIO: the directory has left the log with records that could not be retired, because its disk or the log's device
    /// failed. After a power cut those records are replayed, and the directory would be a mixture of what they say and what
    /// came later.
    pub fn allowed(&self) -> Result<(), Errno> {
        let must_stay = |slot: Slot<'_>| slot.state().has(Flag::FAILED) && slot.is_dirty();
        if self.engine.file(self.directory).is_some_and(must_stay) { Err(Errno::IO) } else { Ok(()) }
    }

    /// Makes a record of a change, durable if it has to be. False: the directory is out of the log, and its next fsync
    /// is real.
    pub fn log(&self, change: &NameChange<'_>) -> bool {
        let is_logged =
            self.is_in_log() && self.append(change).is_some() && (!change.is_awaited() || self.is_durable());
        if !is_logged {
            self.leave();
        }
        is_logged
    }

    /// Takes the directory out of the log: a change follows that no record can express.
    pub fn leave(&self) {
        self.leave_with(false);
    }

    /// The same. True if the disk has everything that ever happened in the directory: it was in the log, and no sync of it
    /// failed.
    pub fn leaves_whole(&self) -> bool {
        let was_in_log = self.is_in_log();
        self.leave();
        let is_whole = |slot: Slot<'_>| !slot.is_dirty() && !slot.state().has(Flag::FAILED);
        was_in_log && self.engine.file(self.directory).is_some_and(is_whole)
    }

    /// As [`leave`](Self::leave); if `with_files`, all of the file system is synced.
    fn leave_with(&self, with_files: bool) {
        if let Some(inside) = &self.inside {
            // A holder that was lost may have been about to move a file: then the disk shows whether it did.
            let with_files = with_files || inside.slot().is_synced_with_files() || inside.inherited();
            let sync = || self.place.sync(with_files).and_then(|()| self.place.check());
            inside.leave(self.engine.pool(), Flag::NONE, sync);
            inside.is_known_up_to(0);
        }
    }

    /// The directory has left the log, and stays outside until somebody syncs it.
    pub fn finish_outside(self) {
        if let Some(inside) = &self.inside {
            inside.was_changed();
        }
    }

    /// The change is over.
    pub fn finish(self) {
        let Some(inside) = &self.inside else { return };
        if inside.slot().state().is_absorbed() {
            inside.is_known_up_to(self.place.changed());
            return;
        }
        if self.is_in_log() {
            // A signal handler has come between, and may have removed the directory.
            self.leave();
        }
        inside.was_changed();
        if self.engine.preset_of(self.directory).is_some_and(policy::counts_on_order) {
            // Nobody syncs it later. If the disk refuses, the slot remembers that.
            let _ = self.sync(inside);
        }
    }

    /// Nothing was changed, and what was captured is durable. False: it needs a real sync.
    #[must_use]
    pub fn finish_durably(self) -> bool {
        let (engine, who, directory) = (self.engine, self.who, self.directory);
        drop(self);
        // Nobody is kept out: others come along with the same sync.
        let Some(slot) = engine.file(directory) else { return false };
        let is_durable = engine.harden(who, slot).is_ok();
        if is_durable {
            slot.has_synced_names();
        }
        is_durable
    }

    /// Waits until the directory's records are durable. False: they cannot be, or too many changes have waited like
    /// this.
    fn is_durable(&self) -> bool {
        self.may_wait() && self.is_hardened()
    }

    /// False: too many changes have waited for the log without a sync.
    fn may_wait(&self) -> bool {
        let Some(inside) = &self.inside else { return false };
        self.engine.pool().journal().is_none() || inside.slot().waits_unsynced() < UNSYNCED
    }

    fn is_hardened(&self) -> bool {
        self.inside.as_ref().is_some_and(|inside| self.engine.harden(self.who, inside.slot()).is_ok())
    }

    /// The record's LSN. `None`: there is no room, or no record can express the change.
    fn append(&self, change: &NameChange<'_>) -> Option<u64> {
        self.append_with(change, |_| {})
    }

    /// The same. `draws` learns the LSN before there is a record with it.
    fn append_with(&self, change: &NameChange<'_>, draws: impl FnOnce(u64)) -> Option<u64> {
        let (inside, log) = (self.inside.as_ref()?, &self.engine.log);
        let encoded = change.encode()?;
        let parts = [encoded.bytes(), change.data()];
        let length = parts.iter().map(|part| part.len() as u64).sum();
        let FileRef { slot, generation } = self.directory;
        let intake = Intake { length, stored: length };
        let record = NewRecord { kind: RecordKind::Names, slot, generation, offset: 0, intake };
        let mut op = log.claim(self.who)?;
        let lsn = op.draw(slot);
        inside.logs(lsn);
        draws(lsn);
        let appended = op.append(lsn, &record, parts.into_iter());
        fence();
        appended.ok()?;
        inside.logged(length);
        Some(lsn)
    }
}
