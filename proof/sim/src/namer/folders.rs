//! Calls that make, move and remove directories, and what programs do with them.

use seawall_core::Errno;
use seawall_core::naming;

use super::{Namer, Place};
use crate::folder::Folder;
use crate::ledger::Act;
use crate::names::folder_inode;
use crate::world::Asked;

/// Names of directories.
const NAMES: [&std::ffi::CStr; 2] = [c"d", c"e"];
/// How long a process waits for the daemon.
const PATIENCE: usize = 60;

impl Namer {
    pub(super) fn folder_operation(&self) {
        let rng = &self.world.rng;
        match rng.below(10) {
            0..2 => self.make_folder(&self.inner()),
            2..4 => self.remove_folder(&self.inner()),
            4..6 => self.rename(&self.inner(), &self.inner()),
            _ => self.write_part(),
        }
    }

    /// A place for a directory, or of one.
    fn inner(&self) -> Place {
        let rng = &self.world.rng;
        let folder = self.folder();
        if rng.one_in(12) { (folder, self.place().1) } else { (folder, rng.pick(&NAMES).to_owned()) }
    }

    /// A directory is written, synced, and put in its place.
    fn write_part(&self) {
        let rng = &self.world.rng;
        let at = self.inner();
        if !rng.one_in(4) {
            // As after the one before it.
            self.sync_folder(at.0);
        }
        self.make_folder(&at);
        let made = self.world.shelf().tree.borrow().folder_at(at.0, at.1.to_bytes());
        let Some(made) = made else { return };
        for _ in 0..rng.range(1, 3) {
            let Some(open) = self.make(&(made, self.place().1)) else { continue };
            self.write(&open, false);
            if rng.below(4) > 0 {
                self.sync_file(&open);
            }
        }
        self.sync_folder(made);
        let to = self.inner();
        self.rename(&at, &to);
        if rng.below(4) > 0 {
            self.sync_folder(to.0);
        }
    }

    /// How many directories there are above it.
    fn depth(&self, folder: usize) -> u64 {
        let tree = self.world.shelf().tree.borrow();
        let above = |folder: &usize| tree.place_of(*folder).map(|(above, _)| above);
        std::iter::successors(Some(folder), above).count() as u64 - 1
    }

    /// mkdir(2).
    pub(super) fn make_folder(&self, place: &Place) {
        let (folder, name) = place;
        if self.depth(*folder) >= self.world.shelf().depth {
            return;
        }
        let kernel = || {
            self.may_make(place)?;
            self.world.makes_folder(*folder, name.to_bytes());
            Ok(())
        };
        self.call(Act::Other(vec![*folder]), || {
            let known = self.engine.directories();
            if let Some(here) = self.here(*folder) {
                return naming::making_new(&here, name, kernel);
            }
            self.outside(known, &[*folder], false, kernel)?;
            self.made_below(place);
            Ok(())
        });
    }

    /// Something new may be made here.
    pub(super) fn may_make(&self, place: &Place) -> Result<(), Errno> {
        if !self.world.shelf().tree.borrow().is_there(place.0) {
            return Err(Errno::NOENT);
        }
        if self.find(place).is_some() { Err(Errno::EXIST) } else { Ok(()) }
    }

    /// A directory was made in one that the log does not know: if that was made lately itself, so was this one.
    fn made_below(&self, (folder, name): &Place) {
        if self.engine.was_made(self.inode_of(*folder)) {
            self.world.step();
            let made = self.world.known(*folder, name.to_bytes());
            if let Some((made, handle)) = made.and_then(|made| Some((made, made.handle?))) {
                self.engine.directory_is_made(made.inode, &handle, &made.attributes);
            }
        }
    }

    /// rmdir(2).
    pub(super) fn remove_folder(&self, place: &Place) {
        let (folder, name) = place;
        let kernel = || {
            self.kernel(|tree| {
                tree.find(*folder, name.to_bytes()).ok_or(Errno::NOENT)?;
                let itself = tree.folder_at(*folder, name.to_bytes()).ok_or(Errno::NOTDIR)?;
                if !tree.names(itself).is_empty() {
                    return Err(Errno::NOTEMPTY);
                }
                Ok(vec![(*folder, name.to_bytes().to_vec(), None)])
            })
        };
        self.call(Act::Remove(*folder, name.to_bytes().to_vec()), || {
            let known = self.engine.directories();
            if let Some(here) = self.here(*folder) {
                return naming::removing_directory(&here, name, kernel);
            }
            self.outside(known, &[*folder], true, || {
                self.leaving(place);
                kernel()
            })
        });
    }

    /// The directory at this place is about to go, or to be elsewhere, by no record: it leaves the log.
    pub(super) fn leaving(&self, (folder, name): &Place) {
        let itself = self.world.shelf().tree.borrow().folder_at(*folder, name.to_bytes());
        itself.and_then(|itself| self.here(itself)).iter().for_each(naming::leaving);
    }

    fn inode_of(&self, folder: usize) -> (u64, u64) {
        folder_inode(&self.world.shelf().tree.borrow(), folder)
    }

    /// Runs a call that changes names in directories not all of which were in the log a moment ago.
    pub(super) fn outside<R>(
        &self,
        known: u32,
        folders: &[usize],
        takes: bool,
        call: impl FnOnce() -> R,
    ) -> R {
        let shrinking = folders.iter().filter(|_| takes).map(|folder| self.inode_of(*folder));
        let entered =
            || folders.iter().filter_map(|of| self.here(*of)).for_each(|here| naming::leaving(&here));
        self.engine.outside(Some(self.who()), known, shrinking, entered, call)
    }

    /// Asks the daemon for a directory, and waits for its answer. True: the log knows it now.
    fn ask(&self, folder: usize, is_new: bool) -> bool {
        let is_answered = std::rc::Rc::default();
        let asked = Asked { folder, is_new, is_answered: std::rc::Rc::clone(&is_answered) };
        self.world.shelf().asked.borrow_mut().push_back(asked);
        for _ in 0..PATIENCE {
            if is_answered.get() {
                return self.here(folder).is_some();
            }
            self.world.give_way();
        }
        false
    }

    /// The directory of a file that is about to be synced, if it was made lately and can be in the log now.
    pub(super) fn takes_new(&self, folder: usize) -> Option<Folder<'_>> {
        self.engine.takes_new(self.inode_of(folder), || self.ask(folder, true)).then(|| self.here(folder))?
    }

    /// Before a sync of a directory.
    pub(super) fn asks_for(&self, folder: usize) {
        let inode = self.inode_of(folder);
        if self.engine.find(inode.0, inode.1).is_none()
            && !self.engine.syncs_new(inode, || self.ask(folder, true))
            && self.world.rng.one_in(2)
        {
            self.ask(folder, false);
        }
    }
}
