//! Small files that are in their directory's log as a whole.

use core::sync::atomic::{self, Ordering::SeqCst};

use rustix::io::Errno;

use super::{Place, Turn};
use crate::engine::Engine;
use crate::file::captured::Capture;
use crate::file::{FileRef, captured};
use crate::format::{Handle, NameChange};

impl Engine {
    /// The file with this inode, if all of it is in the log and the disk may lack it.
    pub fn captured(&self, inode: (u64, u64)) -> Option<captured::Captured> {
        captured::find(self.shm(), inode)
    }

    /// What the log has of the file with this inode.
    pub fn capture_of(&self, inode: (u64, u64)) -> Capture {
        captured::of(self.shm(), inode)
    }

    /// The directory whose log has all of the file with this inode, or may be about to.
    pub fn directory_of_content(&self, inode: (u64, u64)) -> Option<FileRef> {
        match self.capture_of(inode) {
            Capture::No => None,
            Capture::Whole(captured) => Some(captured.directory),
            Capture::UnderWay(slot) => self.slot(slot).map(|slot| slot.file()),
        }
    }

    /// All captured files of a directory.
    pub fn captured_in(&self, directory: FileRef) -> impl Iterator<Item = captured::Captured> {
        captured::all_of(self.shm(), directory)
    }

    /// True if the directory's log has a file that the disk may lack.
    pub fn has_live_content(&self, directory: FileRef) -> bool {
        self.file(directory).is_some_and(|slot| slot.has_live_content())
    }
}

impl<P: Place> Turn<'_, P> {
    /// Makes a record of all of a file with this inode; [`finish_durably`](Self::finish_durably) makes it durable.
    /// `read` reads the file, and hands on what is to be recorded. Before that the file is announced as
    /// [being captured](Capture::UnderWay): whoever changes it and syncs it for real waits for the record, which
    /// may lack that change. False: no record counts, and the file needs a real sync.
    pub fn capture(
        &self,
        inode: (u64, u64),
        file: &Handle,
        read: impl FnOnce(&dyn Fn(&NameChange<'_>) -> Option<u64>) -> Option<u64>,
    ) -> bool {
        let Some(inside) = self.inside.as_ref().filter(|_| self.is_in_log()) else { return false };
        let Some(reserved) = inside.reserve(self.engine.shm(), inode) else {
            // Some become free when the daemon has synced them.
            self.engine.wake_daemon();
            return false;
        };
        let record = |change: &NameChange<'_>| {
            let lsn = self.append(change);
            if lsn.is_none() {
                self.leave();
            }
            lsn
        };
        let Some(lsn) = read(&record) else {
            reserved.give_up();
            return false;
        };
        inside.has_content(lsn);
        reserved.note(self.directory, inode, file, lsn);
        // A thread that took this one for lost retires all records of the directory, and syncs the files that it finds
        // noted: this one among them, or the directory is not in the log any more.
        atomic::fence(SeqCst);
        self.is_in_log()
    }

    /// The file with this inode, which was captured, is on the disk, by a real sync that began when the next record
    /// was to get the LSN `since`. What was captured after that may have more than the disk: `again` syncs the file
    /// once more. False: what was captured may still come back, because this thread is inside already, in a signal
    /// handler, or because the disk refused the file or the directory; or another directory has it by now.
    #[must_use]
    pub fn settle(
        &self,
        file: &captured::Captured,
        inode: (u64, u64),
        since: u64,
        again: impl FnOnce() -> Result<(), Errno>,
    ) -> bool {
        let Some(inside) = &self.inside else { return !self.engine.knows(self.directory) };
        let now = self.engine.captured(inode);
        if now.is_some_and(|now| now.directory != self.directory) {
            return false;
        }
        if now.is_some_and(|now| now.lsn >= since) && again().is_err() {
            return false;
        }
        let is_over = self.log(&NameChange::Settled { file: file.handle, held: None })
            || !inside.slot().has_live_content();
        if is_over {
            captured::forget(self.engine.shm(), inode);
        }
        is_over
    }

    /// The file with this inode has got one more name in the directory, by a change that is logged.
    pub fn linked(&self, inode: (u64, u64)) {
        if self.inside.is_some() {
            captured::count(self.engine.shm(), inode, true);
        }
    }

    /// The same if the name that it had is in another directory, which is entered too.
    pub fn linked_across(&self, inode: (u64, u64)) {
        self.linked(inode);
        captured::spread(self.engine.shm(), inode);
    }

    /// The file with this inode, which had this many names, has lost one here, by a change that is logged.
    pub fn lost(&self, inode: (u64, u64), links: u32) {
        match &self.inside {
            None => {}
            Some(_) if links > 1 => captured::count(self.engine.shm(), inode, false),
            Some(_) => captured::forget(self.engine.shm(), inode),
        }
    }
}
