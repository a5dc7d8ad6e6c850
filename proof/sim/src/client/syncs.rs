//! Syncs of a file, and what only a whole one covers: its name, and its attributes.

use std::os::fd::AsFd;

use seawall_core::{Errno, Scope, Syncing, certain};

use super::{Client, Open};
use crate::metadata::Metadata;
use crate::world::SimFile;

impl Client {
    pub(super) fn sync(&self, open: &Open, scope: Scope) {
        let (begun, due) = {
            let file = &self.world.files.borrow()[open.index];
            (file.model.now(), (file.renamed.due(), file.touched.due()))
        };
        let mut real = false;
        let sync = |scope| {
            real = true;
            self.real(open, scope)?;
            certain::check(open.cache.as_fd())
        };
        let mut syncing = self.engine.sync(self.who(), open.name, scope);
        if let Syncing::Name(due) = syncing {
            syncing = due.synced(self.name(open));
        }
        let done = syncing.by(sync);
        self.world.count(|c| if real { c.real += 1 } else { c.absorbed += 1 });
        self.world.tell(|| format!("file {}: sync of {scope:?} {done:?}, real {real}", open.index));
        if done.is_ok() {
            let file = &mut self.world.files.borrow_mut()[open.index];
            file.model.acknowledge(begun);
            let covered = file.renamed.covers(due.0) && file.touched.covers(due.1);
            if scope == Scope::Whole && !covered {
                self.world.violate(format!("file {}: an fsync left a name or attributes out", open.index));
            }
        }
    }

    fn real(&self, open: &Open, scope: Scope) -> Result<(), Errno> {
        self.world.real_sync(open.index, scope).map_err(Errno::from_raw_os_error)
    }

    /// The name alone, if this descriptor can.
    fn name(&self, open: &Open) -> Result<bool, Errno> {
        if self.world.rng.one_in(8) {
            return Ok(false);
        }
        self.world.directory_sync(open.index).map_err(Errno::from_raw_os_error)?;
        certain::check(open.cache.as_fd()).map(|()| true)
    }

    pub(super) fn rename(&self, open: &Open) {
        let make = || self.make(open, "renamed", |file| &mut file.renamed);
        let which = self.engine.renaming(open.name, make);
        self.world.files.borrow_mut()[open.index].renamed.return_from(which);
    }

    pub(super) fn touch(&self, open: &Open) {
        let make = || self.make(open, "other attributes", |file| &mut file.touched);
        let which = self.engine.touching(open.name, make);
        self.world.files.borrow_mut()[open.index].touched.return_from(which);
    }

    /// The kernel's part of a change of a file's name or attributes.
    fn make(&self, open: &Open, what: &str, of: fn(&mut SimFile) -> &mut Metadata) -> u64 {
        self.world.step();
        let which = of(&mut self.world.files.borrow_mut()[open.index]).make();
        self.world.tell(|| format!("file {}: {what}", open.index));
        self.world.step();
        which
    }
}
