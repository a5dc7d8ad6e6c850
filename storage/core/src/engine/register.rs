//! How a file gets a slot, and how it loses that slot.
//!
//! ```text
//!            register                       admit
//!   free ───────────────▶ in the table, ──────────────▶ found by everybody
//!    ▲                    not found yet                          │
//!    └───────────────────────────────────────────────────────────┘
//!                 evict (nobody uses it) · forget (its last name is gone, its root is closed)
//! ```
//!
//! The daemon alone registers, one file at a time. A crash between any two steps leaves at most an entry in the table
//! that the run-time memory does not know, which the next daemon strikes out ([`Engine::is_left_over`]).

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use rustix::fd::BorrowedFd;
use rustix::io::Errno;

use super::attach::Engine;
use super::names::{Place, Turn};
use crate::Owner;
use crate::file::{BORN, Begins, FileRef, Flag, Inside, Newcomer, Slot, UNBORN, index};
use crate::format;
use crate::table::{self, TableError};

/// A file that has a slot and an entry in the table, and that nobody finds yet.
#[must_use = "nobody finds it before it is admitted"]
pub struct Registered<'e> {
    engine: &'e Engine,
    slot: Slot<'e>,
    file: FileRef,
    begins: Flag,
}

impl Engine {
    /// Registers a file in a free slot. Its entry in the table is persisted when this returns.
    ///
    /// # Errors
    /// [`TableError`]: nothing was registered.
    pub fn register(&self, newcomer: &Newcomer<'_>) -> Result<Registered<'_>, TableError> {
        // Its records will have this LSN or a higher one: it has no records before it is admitted.
        let next = self.next_lsn();
        let is_unborn = matches!(newcomer.begins, Begins::InLogWithName | Begins::Unborn);
        let on_disk = if is_unborn { UNBORN } else { next - 1 };
        debug_assert!(
            is_unborn || on_disk >= BORN,
            "a file that is on the disk does not look as if it were not"
        );
        let vacant = self.slots().filter(|slot| slot.is_vacant()).map(Slot::number);
        if newcomer.is_directory {
            table::expect_names(self.pool())?;
            self.shm().header().directories().fetch_add(1, SeqCst);
        }
        let file = table::enter(self.pool(), vacant, newcomer, on_disk)?;
        let slot = Slot::of(self.shm(), file.slot).ok_or(TableError::Full(format::Zone::Files))?;
        debug_assert_eq!(
            format::watermark(file.slot).load(self.pool()),
            Some(on_disk),
            "the table says what the run-time memory says"
        );
        slot.begin(newcomer, file, on_disk);
        let names = if newcomer.is_named_by_directory { Flag::NAMED_BY_DIRECTORY } else { Flag::NONE };
        let kind = if newcomer.is_directory { Flag::DIRECTORY } else { Flag::NONE };
        Ok(Registered { engine: self, slot, file, begins: newcomer.begins.flags() | names | kind })
    }

    /// True for an entry of the table that the run-time memory does not know: a daemon was killed while it registered
    /// or forgot it.
    pub fn is_left_over(&self, entry: &table::FileEntry) -> bool {
        !self.knows(FileRef { slot: entry.slot, generation: entry.generation })
    }

    /// The cost of evicting the file: files that are all on disk go first, and of these the one that was written
    /// longest ago. `None`: something holds the file out of the log, or it has a history (a failed sync, a lost holder)
    /// that must not be forgotten.
    pub fn eviction_price(&self, slot: Slot<'_>) -> Option<(bool, u64)> {
        let state = slot.state();
        let free = slot.holds() == 0 && !state.has(Flag::NEVER_TRACK);
        (state.has(Flag::USED) && free).then_some((slot.is_dirty(), slot.last_lsn()))
    }

    /// Takes the slot away from a file that nobody has open for writing (the caller has made sure of that), after
    /// retiring its records; `sync` is a real fdatasync of it. False: the file is in use after all, or the disk refused
    /// the sync, and the file stays.
    ///
    /// The file leaves without live records, so whatever is left of it in the log is never read again: recovery ignores
    /// records of a slot's former use. Its next writer registers it anew.
    pub fn evict(&self, who: Owner, file: FileRef, sync: impl FnOnce() -> Result<(), Errno>) -> bool {
        let Some(slot) = self.file(file) else { return false };
        // Never waits: a thread that is inside uses the file.
        let Some(inside) = slot.try_enter(who) else { return false };
        if !slot.is_of(file) || self.eviction_price(slot).is_none() {
            return false;
        }
        inside.leave(self.pool(), Flag::NONE, sync);
        let is_live = self.eviction_price(slot).is_none_or(|(is_live, _)| is_live);
        if is_live {
            return false;
        }
        slot.end();
        drop(inside);
        self.strike_out(slot);
        true
    }

    /// Frees the slot of a file that no longer needs one: its last name is gone, or nobody can write it any more. Any
    /// of its records that could not be retired no longer counts from here on. The same holds for an entry that is
    /// [left over](Self::is_left_over).
    pub fn forget(&self, who: Owner, number: u32) {
        let Some(slot) = Slot::of(self.shm(), number) else { return };
        {
            let entered = self.enter_slot(slot, who).alone();
            slot.end();
            // Nothing that a lost holder left counts any more.
            entered.iter().for_each(Inside::settled);
        }
        self.strike_out(slot);
    }

    fn strike_out(&self, slot: Slot<'_>) {
        index::remove(self.shm(), slot);
        // A device that failed keeps the entry, of a file without live records: recovery only looks for the file. The
        // failure of every sync reports the device.
        let _ = table::strike_out(self.pool(), slot.number());
    }
}

impl Registered<'_> {
    /// The file.
    pub fn file(&self) -> FileRef {
        self.file
    }

    /// Makes the file findable. If its every write must be logged, this takes it into the log first, before anybody can
    /// write to it; `sync` is a real fsync of it. `None`: the index of files has no room, and the file is forgotten.
    pub fn admit(self, who: Owner, sync: impl FnOnce() -> Result<(), Errno>) -> Option<FileRef> {
        self.admit_by(who, |engine, inside| engine.rejoin(&inside, sync))
    }

    /// The same of a file that the log has to make from nothing ([`Begins::InLogWithName`]), although it has content by now:
    /// all of that goes to the log first, as `fd` shows it. `sync` is a real fsync of the file and of its name, for a log
    /// that has no room.
    pub fn admit_with_content(
        self,
        who: Owner,
        fd: BorrowedFd<'_>,
        sync: impl FnOnce() -> Result<(), Errno>,
    ) -> Option<FileRef> {
        let file = self.file;
        self.admit_by(who, |engine, inside| engine.rejoin_with_content(&inside, (who, file), fd, sync))
    }

    /// The same of a directory that the log has to make from nothing ([`Begins::Unborn`]): it is in the log, and whoever finds
    /// it waits, while `record` makes a record of each name in it. False from that: it leaves the log by a real sync.
    pub fn admit_with_names<P: Place>(
        self,
        who: Owner,
        place: &P,
        record: impl FnOnce(&Turn<'_, P>) -> bool,
    ) -> Option<FileRef> {
        let file = self.file;
        self.admit_by(who, |engine, inside| engine.begin_directory((who, file), place, inside, record))
    }

    fn admit_by(self, who: Owner, rejoin: impl FnOnce(&Engine, Inside<'_>)) -> Option<FileRef> {
        let Self { engine, slot, file, begins } = self;
        slot.counts(begins);
        let found = {
            let inside = engine.enter_slot(slot, who).alone();
            let found = index::insert(engine.shm(), slot);
            if slot.state().has(Flag::DIRECTORY) {
                // Whoever did not find it a moment ago looks again after a change of a name in it.
                engine.shm().header().directories().fetch_add(1, SeqCst);
            }
            if let Some(inside) = inside.filter(|_| found) {
                rejoin(engine, inside);
            }
            found
        };
        if !found {
            engine.forget(who, file.slot);
            return None;
        }
        if let Some(root) = engine.shm().root(slot.root()) {
            root.registered().fetch_add(1, Relaxed);
        }
        Some(file)
    }
}
