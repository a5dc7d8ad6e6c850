//! A file that was renamed: its name has to reach the disk, its data are in the log already.
//!
//! Input: renames, announced by the front before and after. Output: the first fsync that begins after one has
//! returned makes the name durable by a sync of the directory, which waits for no data and retires nothing. Every
//! fsync that begins before that one is over does it itself.
//!
//! Two counters and no flag: a rename counts one up, whoever synced lets the other follow to where the first stood
//! when the sync began. So no lock is needed to rename, and a rename during the sync is not taken for done.
//!
//! Only on file systems of which it is known ([`Flag::NAMED_BY_DIRECTORY`](crate::file::Flag)): a rename, across directories too, is one
//! transaction of their journal, which a sync of either directory commits; and fdatasync of the file does not. So an
//! fdatasync is absorbed, whatever the name. Elsewhere the next sync of either kind is a real fsync.

use rustix::fd::BorrowedFd;
use seawall_stats::{Event, ticks};
use seawall_wire::shm::ROOT_PATH_MAX;

use super::{Engine, Entering, Scope};
use crate::file::{FileRef, Slot};
use crate::{Errno, Owner, name, policy};

impl Engine {
    /// The file gets another name: to be told before the rename and after it.
    pub fn need_name(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.renamed();
        }
    }

    /// A rename: the next fsync makes the name durable, from before it until after it.
    pub fn renaming<R>(&self, file: FileRef, op: impl FnOnce() -> R) -> R {
        self.need_name(file);
        let result = op();
        self.need_name(file);
        result
    }

    /// Makes the name of `file` durable, and not its data. `fd` is a descriptor of it, `path` where it is now.
    /// False if that cannot be done this way; also if it has left its root, below which recovery looks for it: its
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

    /// Everything of the file is in the log but its name. `None`: that takes a real sync.
    #[cold]
    pub(super) fn sync_name(
        &self,
        who: Owner,
        file: FileRef,
        slot: Slot<'_>,
        name: impl FnOnce() -> Result<bool, Errno>,
    ) -> Option<Result<(), Errno>> {
        let start = ticks();
        let renames = slot.renames();
        let done = match name() {
            Ok(false) => return None,
            done => done.map(drop),
        };
        slot.count_real_sync();
        // With the lock, the slot stays this file's. A signal handler that has it already leaves it to the next one.
        if let Entering::Alone(inside) = self.enter(who, file) {
            match done {
                Ok(()) => inside.named(renames),
                Err(error) => slot.sync_failed(error),
            }
        }
        self.record(who, Event::SyncReal, slot.class(), self.since(start));
        Some(done)
    }
}

/// True if an fsync that begins now has to make a name durable.
#[inline]
pub(super) fn is_name_due(slot: Slot<'_>, scope: Scope) -> bool {
    scope == Scope::Whole && slot.is_name_due()
}
