//! fsync of a small file and of a directory, as the preload makes them: the first sync of a file becomes a record, and of
//! one that is synced for real the log hears.

use seawall_core::file::captured::Capture;
use seawall_core::naming::{self, Directory, LARGEST, Settling};

use super::{Namer, Open};
use crate::Planted;
use crate::names::inode_of;

/// So often a file is followed that moves while it is to be settled.
const MOVES: usize = 100;

impl Namer {
    /// fsync(2) of a file.
    pub(super) fn sync_file(&self, open: &Open<'_>) {
        let due = self.world.shelf().ledger.borrow().syncs_file(open.file);
        self.world.tell(|| format!("sync of file {} ...", open.file));
        let done = self.first_sync(open) || {
            self.world.count(|c| c.real += 1);
            let since = self.engine.next_lsn();
            self.world.syncs_file(open.file);
            self.world.has(Planted::Unsettled) || self.settle(open, since)
        };
        if done {
            self.world.acknowledged(&due);
        }
    }

    /// Makes all of a file that is synced for the first time a record. False: it is to be synced for real.
    fn first_sync(&self, open: &Open<'_>) -> bool {
        let Some((inode, name)) = self.is_candidate(open) else { return false };
        let here = self.here(name.0).or_else(|| self.takes_new(name.0));
        let is_captured = here.is_some_and(|here| naming::capturing(&here, &name.1, inode));
        self.world.count(|c| c.captured += u64::from(is_captured));
        is_captured
    }

    /// The inode of a file of which the log has nothing yet, and its name.
    fn is_candidate(&self, open: &Open<'_>) -> Option<((u64, u64), super::Place)> {
        let (inode, folder, name) = {
            let tree = self.world.shelf().tree.borrow();
            let inode = tree.inode(open.file).filter(|inode| inode.content().len() <= LARGEST)?;
            let (folder, name) = tree.name_of(open.file)?;
            (inode_of(inode), folder, name)
        };
        let is_known = self.engine.capture_of(inode) != Capture::No;
        // A process does not remember each file that it synced.
        let is_first = !is_known || self.world.rng.one_in(4);
        let name = std::ffi::CString::new(name).ok()?;
        is_first.then_some((inode, (folder, name)))
    }

    /// The file has been synced for real: what the log has of it as a whole must not come back over that. False: it may.
    fn settle(&self, open: &Open<'_>, since: u64) -> bool {
        let Some(inode) = self.inode(open) else { return true };
        (0..MOVES).any(|_| self.settle_once(open, inode, since))
    }

    fn inode(&self, open: &Open<'_>) -> Option<(u64, u64)> {
        self.world.shelf().tree.borrow().inode(open.file).map(inode_of)
    }

    fn settle_once(&self, open: &Open<'_>, inode: (u64, u64), since: u64) -> bool {
        let named = self.world.shelf().tree.borrow().name_of(open.file);
        let named = named.map(|(folder, name)| (folder, std::ffi::CString::new(name).unwrap_or_default()));
        let here = named.as_ref().and_then(|(folder, name)| Some((self.here(*folder)?, name.as_c_str())));
        let again = || {
            self.world.syncs_file(open.file);
            Ok(())
        };
        let found = here.as_ref().map(|(here, name)| (here, *name));
        match naming::settling(&self.engine, found, (inode, since), again) {
            Settling::Done => true,
            Settling::Again | Settling::Refused => false,
            Settling::Elsewhere(_) if named.is_none() => true,
            Settling::Elsewhere(directory) => {
                // The daemon knows it.
                let at = self.world.shelf().folder_in(directory.slot);
                at.and_then(|folder| self.here(folder)).iter().for_each(naming::leaving);
                false
            }
        }
    }

    /// fsync(2) of a directory.
    pub(super) fn sync_folder(&self, folder: usize) {
        let due = self.world.shelf().ledger.borrow().syncs_folder(folder);
        self.world.tell(|| format!("sync of directory {folder} ..."));
        self.asks_for(folder);
        let logged = self
            .here(folder)
            .and_then(|here| self.engine.sync_directory_names(self.who(), here.reference(), &here));
        match logged {
            Some(Ok(())) => self.world.count(|c| c.absorbed += 1),
            Some(Err(_)) if self.world.log_has_failed() => return,
            Some(Err(error)) => return self.world.violate(format!("a directory's sync answers {error}")),
            None => self.world.syncs_folder(folder, false),
        }
        self.world.acknowledged(&due);
    }
}
