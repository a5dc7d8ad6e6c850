//! Directories that were made lately, and may enter the log before the disk has them.

use crate::engine::Engine;
use crate::file::made;
use crate::format::{Attributes, Handle};

impl Engine {
    /// A directory was made, in one that is in the log.
    pub fn directory_is_made(&self, inode: (u64, u64), handle: &Handle, attributes: &Attributes) {
        made::note(self.shm(), inode, handle, attributes);
    }

    /// True if the directory was made lately, and has not been in the log since.
    pub fn was_made(&self, inode: (u64, u64)) -> bool {
        made::is_known(self.shm(), inode)
    }

    /// True if names were only added to it since.
    pub fn grew(&self, inode: (u64, u64)) -> bool {
        made::grew(self.shm(), inode)
    }

    /// The same, and it is this one, with the attributes that it was made with: its names now are all that the disk can have in
    /// it.
    pub fn is_as_made(&self, inode: (u64, u64), handle: &Handle, attributes: &Attributes) -> bool {
        made::is_as_made(self.shm(), inode, handle, attributes)
    }

    /// A name in it, if it was made lately, is about to be taken away, or to be given to a file that was there: of what the
    /// disk has of that the directory's log would know nothing.
    pub fn shrinks(&self, inode: (u64, u64)) {
        made::shrinks(self.shm(), inode);
    }

    /// It was not made lately any more: it is in the log, or was synced.
    pub fn was_synced(&self, inode: (u64, u64)) {
        made::forget(self.shm(), inode);
    }

    /// The first sync of a directory that the log does not know. True if it was made lately: then it waits for no disk if
    /// `register` takes it into the log. Otherwise it is the disk's, and the next one asks as for any directory: most get
    /// their files, are put in place, and are never synced again, and to enter the log with a guard costs more than that.
    pub fn syncs_new(&self, inode: (u64, u64), register: impl FnOnce() -> bool) -> bool {
        let was_made = self.was_made(inode);
        if was_made && !(self.grew(inode) && register()) {
            self.was_synced(inode);
        }
        was_made
    }

    /// A file is about to be synced in a directory that the log does not know. True if that was made lately, and `register`
    /// has taken it into the log.
    pub fn takes_new(&self, inode: (u64, u64), register: impl FnOnce() -> bool) -> bool {
        let is_taken = self.grew(inode) && register();
        if !is_taken {
            // It is not asked for at every file.
            self.shrinks(inode);
        }
        is_taken
    }
}
