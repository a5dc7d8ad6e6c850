//! What a front or the daemon reports about a file, without its lock; and how a file returns to the log.

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

    /// Keeps the file from returning to the log until it is [let back](Self::let_back). The caller still has to take it
    /// out.
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

    /// Makes changes of the file wait as soon as it is out of the log, until they are [resumed](Self::resume_changes),
    /// or for a minute and a half: nothing of it is torn in a copy that is taken meanwhile. Call this while nobody else
    /// changes the file.
    pub fn suspend_changes(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.suspend();
        }
    }

    /// Changes of the file go on.
    pub fn resume_changes(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.resume();
        }
    }

    /// A sync that Seawall itself made failed, and nobody else got the error: the file never returns to the log.
    pub fn distrust(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.distrust();
        }
    }

    /// The file was opened with O_DSYNC or O_SYNC, which Seawall removed: inherited descriptors count as opened that
    /// way.
    pub fn opened_for_sync(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.opened_for_sync();
        }
    }

    /// Bytes from the file's start where a store into a mapping of it cannot fail: blocks on disk, inside the file. 0
    /// unless the file is in the log. Call this in a publish, where the value cannot change.
    #[inline]
    pub fn solid(&self, file: FileRef) -> u64 {
        self.file(file).map_or(0, Slot::solid)
    }

    /// Has the daemon find out anew how much of the file is [solid](Self::solid). Call this in a publish.
    pub fn ask_for_solid(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.forget_solid();
            self.wake_daemon();
        }
    }

    /// A store is about to publish. Call this in a publish, so that the times are moved for the store only after it.
    #[inline]
    pub fn note_store(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.note_store();
        }
    }

    /// Raises the file's watermark for a front that holds its lock, saw a real sync of it succeed, and cannot reach the
    /// journal's device itself.
    ///
    /// # Errors
    /// EBADF if the file is not known, EINVAL for an LSN that it never had, or the device's error.
    pub fn retire_for(&self, file: FileRef, lsn: u64) -> Result<(), Errno> {
        let slot = self.file(file).ok_or(Errno::BADF)?;
        let is_its_own = lsn <= slot.last_lsn() || lsn == FOREVER && slot.state().has(file::Flag::STUCK);
        if is_its_own { slot.raise_watermark(self.pool(), lsn) } else { Err(Errno::INVAL) }
    }
}

/// Returning to the log.
impl Engine {
    /// True if a file that belongs in the log is kept out only by bytes that are not durable yet.
    pub(crate) fn may_rejoin(&self, slot: Slot<'_>) -> bool {
        let state = slot.state();
        let wanted = state.has(file::Flag::ATOMIC) && !state.has(file::Flag::TRACKED);
        wanted && !self.is_exhausted() && slot.may_track(state, self.has_room())
    }

    /// Takes a file whose every write must be logged back into the log at once; `sync` is a real fdatasync of it. Where
    /// that is not possible now, the daemon does it later.
    ///
    /// A change of the file that this process cannot know of sets [`Flag::SYNC_NEEDED`](file::Flag) when it is over.
    /// That flag stays, and the next fsync is real.
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
