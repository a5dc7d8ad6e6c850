//! Destage: in the background, a real fdatasync of the files, then log space is freed.
//!
//! A round takes the pool's stable LSN (no write at or below it is still under way), syncs every file that has records
//! newer than its watermark and is due, raises the watermarks, persists the retired LSN, and only then frees segments.
//! Wherever it is cut, everything that was freed had been retired before.
//!
//! Runs in the daemon alone. Not handled here: which descriptor belongs to a slot ([`Files`]).

mod freeing;
mod stores;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use seawall_stats::{Event, ticks};

use crate::certain::{self, fdatasync};
use crate::directory::changed;
use crate::engine::Entering;
use crate::file::captured::Captured;
use crate::file::{Flag, Inside, Slot};
use crate::format::{Cell, Layout};
use crate::{Engine, FileRef, Owner};
pub(crate) use freeing::announce;
pub use freeing::count_free;
use freeing::free_segments;
use stores::{measure, no_stores, touch};

/// How much of a file's new bytes is written at once: its appenders wait behind them.
const GROWN_PIECE: u64 = 4 << 20;
/// The same for any file if commits wait for a log on a disk, which may be the file's disk: there they wait behind
/// these bytes too.
const BESIDE_LOG_PIECE: u64 = 512 << 10;

/// So many directories of one file system, due in one round, are synced with all of it: one by one each would have its journal
/// committed once more.
const TOGETHER: usize = 8;

/// Gives a descriptor for a slot.
pub trait Files {
    /// A descriptor of the file in `slot`, good for fdatasync.
    ///
    /// # Errors
    /// Why there is none; the file's records stay.
    fn descriptor(&mut self, slot: u32) -> io::Result<BorrowedFd<'_>>;

    /// Writes these bytes of the file in `slot` out before it is synced, `_piece` at a time, so that nobody waits while
    /// the sync writes all of them at once. Makes nothing durable.
    ///
    /// # Errors
    /// The disk's error. No later sync through the same descriptor is trusted then.
    fn write_out(&mut self, _slot: u32, _bytes: Range<u64>, _piece: u64) -> io::Result<()> {
        Ok(())
    }

    /// Syncs the directory in `slot`, and before it these files in it: the disk may lack what the log has of them.
    ///
    /// # Errors
    /// The disk's error.
    fn sync_directory(&mut self, slot: u32, _files: &[Captured]) -> io::Result<()> {
        Ok(rustix::fs::fsync(self.descriptor(slot)?)?)
    }

    /// Syncs the whole file system of the directory in `slot`: a holder was lost in it, or many others are due too.
    ///
    /// # Errors
    /// The disk's error.
    fn sync_around(&mut self, slot: u32) -> io::Result<()> {
        Ok(rustix::fs::syncfs(self.descriptor(slot)?)?)
    }

    /// True if the file in `slot` has not been synced for some time because the log needed the room.
    fn is_calm(&mut self, _slot: u32) -> bool {
        true
    }

    /// Whether this round syncs the file in `slot`, which has records newer than its watermark. If it does not, the
    /// records stay.
    fn is_due(&mut self, _slot: u32, _watermark: u64) -> bool {
        true
    }
}

/// What a round did.
#[derive(Debug, Default)]
pub struct Round {
    /// Files synced.
    pub synced: u32,
    /// Segments freed.
    pub freed: u32,
    /// Files that could not be synced, and why. Their records stay; the operator must learn of it.
    pub failed: Vec<(u32, io::Error)>,
    /// Files every write of which must be logged that were outside the log and are in it again.
    pub readmitted: u32,
    /// Files that still hold records newer than their watermark.
    pub dirty: u32,
}

/// The background worker's state.
pub struct Destager<'e> {
    engine: &'e Engine,
    who: Owner,
}

impl Engine {
    /// Makes room in a journal, if there is one. For the daemon alone.
    pub(crate) fn make_room(&self) {
        if let Some(journal) = self.log.pool.journal() {
            // A device that failed fails every sync; nobody here needs the error.
            let _ = journal.clean_if_due(&self.log);
        }
    }
}

impl<'e> Destager<'e> {
    /// A destager that takes file locks as `who`, a client slot of the daemon's own.
    pub fn new(engine: &'e Engine, who: Owner) -> Self {
        Self { engine, who }
    }

    /// One round over all files that are due, and all segments.
    pub fn round(&mut self, files: &mut dyn Files) -> Round {
        let mut safe = self.engine.log.stable_lsn();
        let together = self.sync_directories(files);
        let mut round = Round { synced: together.len() as u32, ..Round::default() };
        for slot in self.engine.slots() {
            let file = slot.file();
            if together.contains(&slot.number()) {
                // Newer records wait for the next round.
            } else if !slot.is_dirty() {
                self.touch_alone(slot, file, files);
                self.look_ahead(slot, file, files);
                round.readmitted +=
                    u32::from(self.engine.may_rejoin(slot) && self.readmit(slot, file, files));
            } else if files.is_due(slot.number(), slot.watermark()) {
                match self.sync(slot, file, files) {
                    Ok(()) => round.synced += 1,
                    Err(error) => round.failed.push((slot.number(), error)),
                }
            } else {
                self.look_ahead(slot, file, files);
            }
            if slot.is_dirty() {
                round.dirty += 1;
                safe = safe.min(slot.watermark());
            }
        }
        // Nothing that a recovery could still read as live is freed.
        if self.retire(safe).is_ok() {
            round.freed = free_segments(self.engine, self.who, safe);
        }
        self.engine.make_room();
        round
    }

    fn sync(&self, slot: Slot<'_>, file: FileRef, files: &mut dyn Files) -> io::Result<()> {
        if slot.state().has(Flag::DIRECTORY) {
            return self.sync_directory(slot, file, files);
        }
        let failed = || slot.state().has(Flag::FAILED);
        let earlier = || io::Error::other("an earlier sync of it failed");
        if failed() {
            // The code below would not trust the disk's answer; so the disk is not asked.
            return Err(earlier());
        }
        let fd = files.descriptor(slot.number())?;
        let Entering::Alone(inside) = self.engine.enter(self.who, file) else { return Ok(()) };
        // Nobody is inside, so every record up to here has been published.
        let last = inside.retires();
        let (bytes, piece) = match self.waits_for_a_disk() {
            false => (measure(&inside, fd), GROWN_PIECE),
            true => (no_stores(slot, fd)?, BESIDE_LOG_PIECE),
        };
        touch(&inside, fd);
        // A lock that was inherited is kept until the lost holder's record is retired.
        let was_inherited = inside.inherited();
        let kept = was_inherited.then_some(inside);
        // Under a lock that is kept, a write-out beforehand would spare nobody a wait.
        self.sync_disk(slot, file, files, kept.is_none().then_some((bytes, piece)))?;
        let entering = kept.map_or_else(|| self.engine.enter(self.who, file), Entering::Alone);
        // The slot may belong to another file by now; this sync says nothing about that one.
        let Entering::Alone(inside) = entering else { return Ok(()) };
        if failed() {
            // Another sync failed meanwhile: the success of this one proves nothing.
            return Err(earlier());
        }
        if last > slot.watermark() {
            slot.raise_watermark(self.engine.pool(), last)?;
        }
        if was_inherited {
            inside.settled();
            // The lost holder may have had the file out of the log for a moment. Nobody was inside since before that
            // sync.
            self.engine.rejoin(&inside, || Ok(()));
        }
        Ok(())
    }

    /// The disk's part of a file's sync. `ahead` is written out first: these bytes, so many at a time.
    fn sync_disk(
        &self,
        slot: Slot<'_>,
        file: FileRef,
        files: &mut dyn Files,
        ahead: Option<(Range<u64>, u64)>,
    ) -> io::Result<()> {
        let (number, start) = (slot.number(), ticks());
        if let Some((bytes, piece)) = ahead
            && let Err(error) = files.write_out(number, bytes, piece)
        {
            self.engine.distrust(file);
            return Err(error);
        }
        let fd = files.descriptor(number)?;
        if let Err(error) = fdatasync(fd) {
            self.engine.distrust(file);
            return Err(error.into());
        }
        let shm = self.engine.shm();
        let ns = shm.header().clock().ns(ticks().wrapping_sub(start));
        shm.stats(shm.shape().lanes).record(Event::Destage, slot.class(), ns);
        Ok(())
    }

    /// Syncs the directories that are due, if they are many of one file system. Returns their slots. What cannot be synced so is
    /// left for a sync of its own, which tells whose the error is.
    pub fn sync_directories(&mut self, files: &mut dyn Files) -> BTreeSet<u32> {
        let is_due = |slot: &Slot<'_>| {
            let state = slot.state();
            let may = state.has(Flag::DIRECTORY) && !state.has(Flag::FAILED) && slot.is_dirty();
            may && files.is_due(slot.number(), slot.watermark())
        };
        let mut due: BTreeMap<u64, Vec<(Slot<'_>, FileRef, u64)>> = BTreeMap::new();
        for slot in self.engine.slots().filter(is_due) {
            // Nobody is inside, so every record up to here has been published.
            if let Some(inside) = self.enter_whole(slot.file()) {
                let last = inside.retires();
                due.entry(slot.inode().0).or_default().push((slot, slot.file(), last));
            }
        }
        let mut synced = BTreeSet::new();
        for all in due.into_values().filter(|all| all.len() >= TOGETHER) {
            if files.sync_around(all[0].0.number()).is_err() {
                continue;
            }
            for (slot, file, last) in all {
                let Some(inside) = self.enter_whole(file) else { continue };
                if self.retire_directory(&inside, last, files).is_ok() {
                    synced.insert(slot.number());
                }
            }
        }
        synced
    }

    /// A directory stays in the log: what happens in it meanwhile has newer records.
    fn sync_directory(&self, slot: Slot<'_>, file: FileRef, files: &mut dyn Files) -> io::Result<()> {
        let number = slot.number();
        let Entering::Alone(inside) = self.engine.enter(self.who, file) else { return Ok(()) };
        let last = inside.retires();
        // Collected while nobody is inside: none of these files can get a newer record at this moment.
        let captured: Vec<Captured> = self.engine.captured_in(file).collect();
        let has_linked_out = slot.has_linked_out();
        // If a holder was lost inside, what it left half done is retired before another one comes in.
        let was_inherited = inside.inherited();
        let kept = was_inherited.then_some(inside);
        let synced = match slot.state().has(Flag::FAILED) {
            true => Err(io::Error::other("an earlier sync of it failed")),
            false if was_inherited => files.sync_around(number),
            false => files.sync_directory(number, &captured).and_then(|()| match has_linked_out {
                true => self.sync_other_directories(number, files),
                false => Ok(()),
            }),
        };
        synced.inspect_err(|_| self.engine.distrust(file))?;
        let entering = kept.map_or_else(|| self.engine.enter(self.who, file), Entering::Alone);
        let Entering::Alone(inside) = entering else { return Ok(()) };
        self.retire_directory(&inside, last, files)?;
        if was_inherited {
            inside.is_known_up_to(0);
            inside.settled();
        }
        Ok(())
    }

    /// A directory was synced by a sync that covers its records up to `last`.
    fn retire_directory(&self, inside: &Inside<'_>, last: u64, files: &mut dyn Files) -> io::Result<()> {
        let slot = inside.slot();
        let fd = files.descriptor(slot.number())?;
        let is_known = slot.is_known_at(changed(fd));
        certain::check(fd).inspect_err(|_| self.engine.distrust(slot.file()))?;
        // The check has changed the time. An unseen change by somebody else still shows.
        inside.is_known_up_to(if is_known { changed(fd) } else { 0 });
        let pool = self.engine.pool();
        if last > slot.watermark() {
            slot.raise_watermark(pool, last)?;
        }
        Ok(())
    }

    /// A file of the directory in this slot got a name in another one. One without live records was synced since; one that
    /// cannot be reached is synced with all of the file system.
    fn sync_other_directories(&self, number: u32, files: &mut dyn Files) -> io::Result<()> {
        let is_other = |slot: &Slot<'_>| slot.number() != number && slot.state().has(Flag::DIRECTORY);
        let mut others = self.engine.slots().filter(|slot| is_other(slot) && slot.is_dirty());
        others.try_for_each(|slot| match files.descriptor(slot.number()).is_ok() {
            // The kernel tells the error once, and it is about that directory too.
            true => {
                files.sync_directory(slot.number(), &[]).inspect_err(|_| self.engine.distrust(slot.file()))
            }
            false => files.sync_around(number),
        })
    }

    /// True if commits wait for a log on a disk, which may be the file's.
    fn waits_for_a_disk(&self) -> bool {
        self.engine.pool().journal().is_some()
    }

    /// Finds out how much of a file a store may overwrite, so that stores need not wait for its first sync.
    fn look_ahead(&self, slot: Slot<'_>, file: FileRef, files: &mut dyn Files) {
        if slot.solid() != 0 || !slot.state().has(Flag::TRACKED) || slot.state().has(Flag::DIRECTORY) {
            return;
        }
        if self.waits_for_a_disk() && !files.is_calm(slot.number()) {
            return;
        }
        let Ok(fd) = files.descriptor(slot.number()) else { return };
        if let Some(inside) = self.enter_whole(file) {
            measure(&inside, fd);
        }
    }

    /// The same for a file that its own fsync retired.
    fn touch_alone(&self, slot: Slot<'_>, file: FileRef, files: &mut dyn Files) {
        if slot.state().has(Flag::STORED)
            && let Ok(fd) = files.descriptor(slot.number())
            && let Some(inside) = self.enter_whole(file)
        {
            touch(&inside, fd);
        }
    }

    /// Takes a file back into the log. The first sync, which runs beside its writers, leaves little to the second one,
    /// for which they wait.
    fn readmit(&self, slot: Slot<'_>, file: FileRef, files: &mut dyn Files) -> bool {
        let Ok(fd) = files.descriptor(slot.number()) else { return false };
        if fdatasync(fd).is_err() {
            self.engine.distrust(file);
            return false;
        }
        let Some(inside) = self.enter_whole(file) else { return false };
        self.engine.rejoin(&inside, || fdatasync(fd));
        slot.state().has(Flag::TRACKED)
    }

    /// Enters the file, if it still has its slot and nobody was lost inside.
    fn enter_whole(&self, file: FileRef) -> Option<Inside<'_>> {
        match self.engine.enter(self.who, file) {
            Entering::Alone(inside) if !inside.inherited() => Some(inside),
            _ => None,
        }
    }

    fn retire(&self, safe: u64) -> Result<(), Errno> {
        let cell = Cell::at(Layout::retired());
        self.engine.pool().change(&[cell.range()], |pool| cell.raise(pool, safe))
    }
}
