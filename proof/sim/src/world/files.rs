//! The files of the simulated machine: the page cache, the part of it that is on disk, and what the model knows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use seawall_core::FileRef;
use seawall_core::file::{Flag, State};

use super::World;
use super::file::{FsJournal, SimFile};
use crate::image::memory_file;
use crate::metadata::Metadata;
use crate::{Change, Disk, Model, Survival, names};

impl World {
    /// Creates a file: until its first real sync a crash may take it away altogether.
    pub fn create_file(&self) {
        let index = self.add_file(Vec::new());
        self.files.borrow_mut()[index].fresh = true;
    }

    /// Adds a file with this content, all of it durable.
    pub fn add_file(&self, content: Vec<u8>) -> usize {
        let cache = memory_file("seawall-sim-file", &content);
        let mut files = self.files.borrow_mut();
        let index = files.len();
        self.descriptors.borrow_mut().insert(cache.as_raw_fd(), index);
        files.push(SimFile {
            cache: Rc::new(cache),
            disk: Disk::holding(content.clone()).on(self.sector),
            model: Model::holding(content).lazy(self.block.is_some() && !self.atomic),
            platter: None,
            name: None,
            identity: names::identity(index),
            unlinked: false,
            open: 0,
            leased: false,
            watched: false,
            wounded: false,
            partly: 0,
            fresh: false,
            renamed: Metadata::default(),
            touched: Metadata::default(),
            left_full: false,
            excused: false,
            holders: BTreeSet::new(),
            errors: 0,
            told: BTreeMap::new(),
            told_last: None,
        });
        index
    }

    /// Another descriptor of a file, whose writes are found by looking.
    pub fn watched_descriptor(&self, index: usize) -> std::io::Result<File> {
        let file = self.files.borrow()[index].cache.try_clone()?;
        self.descriptors.borrow_mut().insert(file.as_raw_fd(), index);
        self.files.borrow_mut()[index].watched = true;
        Ok(file)
    }

    /// A descriptor with a position of its own; real syncs of it are the file's.
    pub fn reopened(&self, index: usize) -> std::io::Result<File> {
        let fd = self.files.borrow()[index].cache.as_raw_fd();
        let file = File::options().read(true).write(true).open(format!("/proc/self/fd/{fd}"))?;
        self.descriptors.borrow_mut().insert(file.as_raw_fd(), index);
        Ok(file)
    }

    /// How many files there are, gone ones among them.
    pub fn file_count(&self) -> usize {
        self.files.borrow().len()
    }

    /// The file behind a descriptor.
    pub fn file_of(&self, fd: i32) -> Option<usize> {
        self.descriptors.borrow().get(&fd).copied()
    }

    /// The file registered in a slot.
    pub fn file_in(&self, slot: u32) -> Option<usize> {
        self.files.borrow().iter().rposition(|f| f.name.is_some_and(|name| name.slot == slot))
    }

    /// True if the log holds every change of the file made now.
    pub fn is_tracked(&self, index: usize) -> bool {
        let state = self.state(index);
        // Somebody lost its lock, and may not know yet: what it publishes now is not in the log any more.
        state.has(Flag::TRACKED) && !state.has(Flag::STUCK)
    }

    /// True for a file that may not be changed: its every write is to be logged, and it failed a sync outside the log.
    pub fn is_barred(&self, index: usize) -> bool {
        let state = self.state(index);
        self.atomic && state.has(Flag::FAILED) && !state.has(Flag::TRACKED)
    }

    /// True if a change or a sync of the file may fail.
    pub fn may_fail(&self, index: usize) -> bool {
        self.state(index).has(Flag::FAILED) || self.files.borrow()[index].errors > 0 || self.log_has_failed()
    }

    /// True if a living thread lost its lock.
    pub(super) fn is_stuck(&self, index: usize) -> bool {
        self.state(index).has(Flag::STUCK)
    }

    fn state(&self, index: usize) -> State {
        let name = self.files.borrow()[index].name;
        self.state_of(name)
    }

    fn state_of(&self, name: Option<FileRef>) -> State {
        let engine = self.engine.borrow().clone();
        self.peek(|| name.zip(engine).map_or_else(State::default, |(name, engine)| engine.state(name)))
    }

    pub(super) fn is_failed(&self, name: Option<FileRef>) -> bool {
        self.state_of(name).has(Flag::FAILED)
    }

    /// P2 of the policy `atomic`: a change goes around the log only while a hold or a daemon that frees nothing keeps
    /// its file out, or until somebody had a chance to take it back. It never does after a sync outside the log failed.
    pub fn must_be_logged(&self, index: usize, logged: bool) {
        let name = self.files.borrow()[index].name;
        let Some((name, engine)) = name.zip(self.engine.borrow().clone()).filter(|_| self.atomic) else {
            return;
        };
        let slot = self.peek(|| engine.slot(name.slot).map(|slot| (slot.state(), slot.holds())));
        let (state, holds) = slot.unwrap_or_default();
        let full = self.peek(|| engine.is_exhausted());
        let never = state.has(Flag::NEVER_TRACK.without(Flag::FAILED));
        let kept_out = holds != 0 || full || never || self.log_has_failed();
        let excused = {
            let file = &mut self.files.borrow_mut()[index];
            file.excused = !logged && (file.excused || kept_out || !file.holders.is_empty());
            file.excused
        };
        self.count(|c| c.around += u64::from(!logged));
        if !logged && !excused {
            self.violate(format!("a change of file {index} went around the log ({state:?})"));
        }
    }

    /// Changes page cache and disk model alike, as the kernel does for a published change.
    pub fn change(&self, index: usize, change: &Change) {
        self.look(index);
        if self.journal.get() == FsJournal::Aborted && self.rng.one_in(8) {
            self.journal.set(FsJournal::Noticed);
        }
        let mut files = self.files.borrow_mut();
        let file = &mut files[index];
        match change {
            Change::Write(at, data) => file.disk.write(*at, data),
            Change::Append(data) => {
                let end = file.disk.cache().len();
                file.disk.write(end, data);
            }
            Change::Truncate(len) => file.disk.set_len(*len),
            Change::Grow(len) if *len > file.disk.cache().len() => file.disk.set_len(*len),
            Change::Grow(_) => {}
            Change::Becomes(all) => file.disk.becomes(all),
        }
        match change {
            Change::Write(at, data) => file.cache.write_all_at(data, *at as u64).expect("room"),
            _ => {
                file.cache.set_len(file.disk.cache().len() as u64).expect("a size");
                file.cache.write_all_at(file.disk.cache(), 0).expect("room");
            }
        }
    }

    /// Changes begin and end at multiples of this. On a disk that garbles: of its sectors, because only there does
    /// the log hold all of what the disk was writing.
    pub fn unit(&self) -> u64 {
        if self.garbles { self.sector as u64 } else { 1 }
    }

    /// True if whatever of this file is under way to the disk is in the log, whole sectors of it.
    fn may_garble(&self, index: usize) -> bool {
        let all_logged = {
            let file = &self.files.borrow()[index];
            file.model.unpromised.is_none() && !file.has_unlogged()
        };
        let replayed = || self.recovering.get() && self.engine.borrow().is_none();
        // On a block device under `tail` nothing brings back what nobody synced yet, as without a log.
        let is_hardened_first = self.block.is_none() || self.atomic;
        self.garbles && is_hardened_first && (replayed() || all_logged && self.is_tracked(index))
    }

    /// What a power cut now leaves of a file.
    pub fn left_of(&self, index: usize) -> Vec<u8> {
        let (may_garble, survival) = (self.may_garble(index), Survival::draw(&self.rng));
        let disk = &self.files.borrow()[index].disk;
        if !may_garble {
            return disk.crash(survival, &self.rng);
        }
        self.count(|c| c.garbled += 1);
        disk.garbled(survival, &self.rng)
    }

    /// Takes over what was written behind our back.
    pub fn look(&self, index: usize) {
        let mut files = self.files.borrow_mut();
        let file = &mut files[index];
        if file.watched {
            let len = file.cache.metadata().expect("a size").len() as usize;
            let mut content = vec![0; len];
            file.cache.read_exact_at(&mut content, 0).expect("readable");
            file.disk.becomes(&content);
        }
        file.model.end = file.disk.cache().len();
    }

    /// After a death inside a change: what is there now is what happened. Not so if its sync failed before:
    /// then the record stays, and comes back at a power cut. Nor if a write-back failed and nobody has got its error yet:
    /// the kernel may have dropped pages since whose records come back.
    pub fn settle(&self, index: usize) {
        self.look(index);
        let name = self.files.borrow()[index].name;
        let file = &mut self.files.borrow_mut()[index];
        if std::mem::take(&mut file.wounded) {
            let for_certain = !self.is_failed(name) && file.errors == 0;
            file.found(for_certain);
        }
    }

    /// The power went: this is what is left of a file, if it is not lost with its name.
    pub fn power_loss(&self, index: usize, content: Vec<u8>, lost: bool) {
        let mut files = self.files.borrow_mut();
        let file = &mut files[index];
        file.model.end = file.disk.cache().len();
        file.cache.set_len(content.len() as u64).expect("a size");
        file.cache.write_all_at(&content, 0).expect("room");
        file.disk = Disk::holding(content).on(self.sector);
        file.unlinked |= lost;
        (file.name, file.watched, file.wounded) = (None, false, false);
        // Made or undone: what there is now is on disk.
        (file.renamed, file.touched) = (Metadata::default(), Metadata::default());
        if !file.unlinked {
            file.errors = 0;
        }
        file.told_last = None;
        file.told.clear();
    }

    /// Recovery is over: judges the file's content and takes it as what it holds from now on.
    pub fn recovered(&self, index: usize) {
        let mut files = self.files.borrow_mut();
        let file = &mut files[index];
        let content = file.disk.durable().to_vec();
        let verdict = if file.unlinked { Ok(()) } else { file.check(&content) };
        file.recovered(content.clone());
        file.disk = Disk::holding(content).on(self.sector);
        file.fresh = false;
        drop(files);
        if let Err(why) = verdict {
            self.violate(format!("after recovery, file {index}: {why}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;
    use crate::restart::Scene;

    /// Seed 453 of 22 November 2026: a page was dropped after its write-back had failed, and a death elsewhere in the
    /// file made the model believe what readers saw then, though the log holds what was acknowledged.
    #[test]
    fn regression_a_dropped_page_is_not_what_happened() {
        let world = Scene::new(&Plan::of(1)).world;
        let index = world.add_file(vec![1; 4096]);
        let written = Change::Write(0, Rc::new(vec![2; 64]));
        world.change(index, &written);
        {
            let file = &mut world.files.borrow_mut()[index];
            let seq = file.model.push(written, true);
            file.model.returned(seq);
            file.disk.fail();
            file.errors += 1;
            while !file.disk.drop_lost(&world.rng) {}
            file.wounded = true;
        }
        world.settle(index);
        // A later sync acknowledges everything so far.
        world.files.borrow_mut()[index].model.acknowledge(u64::MAX);
        let acknowledged = [vec![2; 64], vec![1; 4032]].concat();
        assert_eq!(world.files.borrow()[index].model.check(&acknowledged), Ok(()));
    }
}
