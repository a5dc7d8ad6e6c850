//! A renamed file: its name has to reach the disk; its data are in the log already.
//!
//! Input: renames, announced by the front before and after. Output: the first fsync that begins after a rename has
//! returned makes the name durable by a sync of the directory, which waits for no data and retires nothing. Every fsync
//! that begins before that sync is over does the same itself.
//!
//! Two counters and no flag: a rename increments one; a sync lets the other follow up to the value that the first had
//! when the sync began. So no lock is needed to rename, and a rename during the sync is not mistaken for a durable one.
//!
//! Only on file systems known to work this way ([`Flag::NAMED_BY_DIRECTORY`](crate::file::Flag)): a rename, across
//! directories too, is one transaction of their journal, which a sync of either directory commits, and an fdatasync of
//! the file does not. So an fdatasync is absorbed, whatever the name. Elsewhere the next sync of either kind is a real
//! fsync.

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use seawall_wire::shm::ROOT_PATH_MAX;

use super::attach::Engine;
use super::scope::Scope;
use crate::file::{FileRef, Slot};
use crate::{name, policy};

impl Engine {
    /// The file gets another name: call this before the rename and after it.
    pub fn renamed(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.renamed();
        }
    }

    /// Runs a rename: the next fsync makes the name durable, from before the rename until after it.
    pub fn renaming<R>(&self, file: FileRef, op: impl FnOnce() -> R) -> R {
        self.renamed(file);
        let result = op();
        self.renamed(file);
        result
    }

    /// Makes the name of `file` durable, and not its data. `fd` is a descriptor of it, `path` where it is now. False if
    /// that cannot be done this way, and also if the file has left its root, below which recovery looks for it: its
    /// records must not outlive a name elsewhere.
    ///
    /// # Errors
    /// As [`name::sync`].
    pub fn sync_directory(&self, file: FileRef, fd: BorrowedFd<'_>, path: &[u8]) -> Result<bool, Errno> {
        let mut room = [0; ROOT_PATH_MAX];
        let root = self.file(file).and_then(|f| self.shm().root(f.root()));
        let inside = root.is_some_and(|root| policy::relative(root.path(&mut room), path).is_some());
        if inside { name::sync(fd, path) } else { Ok(false) }
    }
}

/// True if an fsync that begins now has to make a name durable.
#[inline]
pub(super) fn is_name_due(slot: Slot<'_>, scope: Scope) -> bool {
    scope == Scope::Whole && slot.is_name_due()
}
