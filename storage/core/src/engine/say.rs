//! What a front or the daemon says of a file, without its lock; and how a file returns to the log.

use rustix::io::Errno;

use super::attach::Engine;
use crate::file::{self, FileRef, Inside, KeptOut, Slot};
use crate::format::FOREVER;

impl Engine {
    /// The next fsync of the file is real: it has another link or other attributes, or was written unseen.
    pub fn disturb(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.disturb();
            // It may have a set-id bit now, which only a write by a call takes away.
            slot.forget_solid();
        }
    }

    /// A change of links or attributes: the next fsync is real, from before it until after it.
    pub fn touching<R>(&self, file: FileRef, op: impl FnOnce() -> R) -> R {
        self.disturb(file);
        let result = op();
        self.disturb(file);
        result
    }

    /// Keeps the file from returning to the log, until it is [let back](Self::let_back). It is still to be taken out.
    pub fn keep_out(&self, file: FileRef, why: KeptOut) {
        if let Some(slot) = self.file(file) {
            slot.keep_out(why);
        }
    }

    /// That reason is gone: the file returns to the log after the next undisturbed real fsync, if there is no other.
    pub fn let_back(&self, file: FileRef, why: KeptOut) {
        if let Some(slot) = self.file(file) {
            slot.let_back(why);
        }
    }

    /// Has changes of the file wait as soon as it is out of the log, until they are [resumed](Self::resume_changes), or for a
    /// minute and a half: nothing of it is torn in a copy that is taken meanwhile. To be called where nobody else changes it.
    pub fn suspend_changes(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.suspend();
        }
    }

    /// They go on.
    pub fn resume_changes(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.resume();
        }
    }

    /// A sync of the caller's own failed, of which nobody else was told: the file never returns to the log.
    pub fn distrust(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.distrust();
        }
    }

    /// Somebody opened the file with O_DSYNC or O_SYNC that was taken off: inherited descriptors count as such.
    pub fn opened_for_sync(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.opened_for_sync();
        }
    }

    /// Bytes from the file's start where a store into a mapping of it cannot fail: blocks on disk, inside the
    /// file. 0 unless the file is in the log. To be asked in a publish, where it cannot change.
    #[inline]
    pub fn solid(&self, file: FileRef) -> u64 {
        self.file(file).map_or(0, Slot::solid)
    }

    /// Has the daemon find out anew what is [solid](Self::solid). To be called in a publish.
    pub fn ask_for_solid(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.forget_solid();
            self.wake_daemon();
        }
    }

    /// A store is about to publish. To be called in a publish, so that whoever moves the file's times for it comes
    /// after the store.
    #[inline]
    pub fn note_store(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.note_store();
        }
    }

    /// Raises the file's watermark for a front that has its lock, saw a real sync of it succeed, and does not reach the
    /// journal's device itself.
    ///
    /// # Errors
    /// EBADF if the file is not known, EINVAL for an LSN that it never had, or what the device said.
    pub fn retire_for(&self, file: FileRef, lsn: u64) -> Result<(), Errno> {
        let slot = self.file(file).ok_or(Errno::BADF)?;
        let is_its_own = lsn <= slot.last_lsn() || lsn == FOREVER && slot.state().has(file::Flag::STUCK);
        if is_its_own { slot.raise_watermark(self.pool(), lsn) } else { Err(Errno::INVAL) }
    }
}

/// Return to the log.
impl Engine {
    /// True if nothing but what is not durable yet keeps a file out that belongs into the log.
    pub(crate) fn may_rejoin(&self, slot: Slot<'_>) -> bool {
        let state = slot.state();
        let wanted = state.has(file::Flag::ATOMIC) && !state.has(file::Flag::TRACKED);
        wanted && !self.is_exhausted() && slot.may_track(state, self.has_room())
    }

    /// Takes a file whose every write is to be logged back into the log at once; `sync` is a real fdatasync of it.
    /// Where that is not possible now the daemon does it later.
    ///
    /// A change of the file that this process cannot know of sets [`Flag::SYNC_NEEDED`](file::Flag) when it is over: that
    /// flag stays, and the next fsync is real.
    pub(crate) fn rejoin(&self, inside: &Inside<'_>, sync: impl FnOnce() -> Result<(), Errno>) {
        if !self.may_rejoin(inside.slot()) {
            return;
        }
        match sync() {
            Ok(()) => inside.track(self.has_room()),
            Err(_) => inside.slot().distrust(),
        }
    }
}
