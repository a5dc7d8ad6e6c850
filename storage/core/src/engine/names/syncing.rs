//! Syncs of directories, most of which the log has answered already.

use rustix::io::Errno;

use super::{Place, Turn};
use crate::Owner;
use crate::engine::Engine;
use crate::file::{FileRef, Flag, Inside};

impl Engine {
    /// fsync(2) of a directory. `None`: the directory is no longer known.
    ///
    /// # Errors
    /// The disk's error.
    pub fn sync_directory_names<P: Place>(
        &self,
        who: Owner,
        directory: FileRef,
        place: &P,
    ) -> Option<Result<(), Errno>> {
        let slot = self.file(directory)?;
        let is_in_log =
            slot.state().is_absorbed() && slot.is_known_at(place.changed_before()) && self.knows(directory);
        if !is_in_log {
            let turn = self.enter_directory(who, directory, place);
            let Some(inside) = &turn.inside else { return self.knows(directory).then(|| place.sync(true)) };
            if let Some(done) = turn.sync(inside) {
                return Some(done);
            }
        }
        // The log may have other changes of names in it: a journal that is kept, and empty.
        let done = self.harden_all();
        if done.is_ok() {
            slot.has_synced_names();
            slot.count_absorbed();
        }
        Some(done)
    }
}

impl<P: Place> Turn<'_, P> {
    /// A real sync, beside which nobody changes a name. `None`: all of it is in the log.
    pub(super) fn sync(&self, inside: &Inside<'_>) -> Option<Result<(), Errno>> {
        let slot = inside.slot();
        if slot.state().has(Flag::FAILED) {
            return Some(Err(Errno::IO));
        }
        let changed = self.place.changed();
        match slot.state().is_absorbed() && slot.is_known_at(changed) {
            true => None,
            false => Some(self.sync_for_real(inside, changed)),
        }
    }

    fn sync_for_real(&self, inside: &Inside<'_>, changed: u64) -> Result<(), Errno> {
        let slot = inside.slot();
        slot.count_real_sync();
        let covered = inside.covered(true);
        if !self.engine.is_seen_by_all() {
            // Nor may a change of a name that is under way.
            inside.was_changed();
        }
        self.place.sync(slot.is_synced_with_files()).inspect_err(|error| slot.sync_failed(*error))?;
        let is_covered = self.place.changed() == changed;
        if !is_covered {
            // A name was made unseen meanwhile: this sync may not cover it.
            inside.was_changed();
        }
        self.place.check().inspect_err(|error| slot.sync_failed(*error))?;
        inside.synced(self.engine.pool(), &covered, self.engine.has_room())?;
        inside.is_known_up_to(if is_covered { self.place.changed() } else { 0 });
        slot.has_synced_names();
        Ok(())
    }
}
