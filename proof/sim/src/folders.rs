//! What the daemon does for directories whose names are in the log; see `seawall-daemon`, `directories`.

use std::path::PathBuf;

use seawall_core::file::{Begins, Flag, Newcomer};
use seawall_core::naming::{self, Directory};
use seawall_stats::Class;

use crate::daemon::Daemon;
use crate::folder::Folder;
use crate::names;

impl Daemon {
    /// Goes on with the directories that an earlier daemon registered.
    pub fn find_folders(&self) {
        let Some(shelf) = &self.world.shelf else { return };
        for slot in shelf.slots.borrow_mut().iter_mut() {
            *slot = slot.filter(|name| self.world.peek(|| self.engine.knows(*name)));
        }
    }

    /// Registers the directories that have no slot.
    pub fn register_folders(&self) {
        let Some(shelf) = &self.world.shelf else { return };
        for folder in 0..shelf.folders() {
            if shelf.slots.borrow()[folder].is_none() {
                self.register_folder(folder);
            }
        }
    }

    fn register_folder(&self, folder: usize) {
        let hint: PathBuf = names::folder_hint(folder);
        let registered = self.engine.register(&Newcomer {
            root: 0,
            identity: &names::folder_identity(folder),
            hint: &hint,
            inode: names::folder_inode(folder),
            class: Class::Other,
            begins: Begins::Outside,
            is_named_by_directory: true,
            is_directory: true,
        });
        let Ok(registered) = registered else { return };
        let name = registered.file();
        self.world.shelf().slots.borrow_mut()[folder] = Some(name);
        let admitted = registered.admit(self.who(), || Ok(()));
        self.world.tell(|| format!("directory {folder} registered in slot {}: {admitted:?}", name.slot));
    }

    fn here(&self, folder: usize) -> Option<Folder<'_>> {
        Some(Folder::find(&self.world, &self.engine, self.who(), folder)?.unread())
    }

    /// Takes those out of the log in which something happened unseen.
    pub fn review(&self) {
        for folder in 0..self.world.shelf().folders() {
            let Some(here) = self.here(folder) else { continue };
            let slot = self.engine.file(here.reference());
            if slot.is_some_and(|slot| slot.is_dirty() && slot.state().has(Flag::TRACKED)) {
                naming::enter(&here).finish();
            }
        }
    }

    /// Takes a directory out of the log, as for a file whose directory its process does not know.
    pub fn leave_folder(&self) {
        if !self.world.rng.one_in(16) {
            return;
        }
        let folder = self.world.rng.below(self.world.shelf().folders() as u64) as usize;
        self.here(folder).iter().for_each(naming::leaving);
    }
}
