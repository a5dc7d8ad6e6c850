//! What takes a file out of the log: a mapping, a call that is not logged, the end of its last name.

use std::os::fd::AsFd;

use seawall_core::{Scope, certain};

use super::{Client, Open, bytes};
use crate::Change;

impl Client {
    /// A writable mapping for a while: stores nobody sees.
    pub(super) fn hold(&self, open: &Open) {
        self.world.files.borrow_mut()[open.index].holders.insert(self.thread);
        self.engine.hold(self.who(), open.name, || certain::fdatasync(open.cache.as_fd()));
        self.world.files.borrow_mut()[open.index].excused = true;
        for _ in 0..self.world.rng.below(4) {
            let at = self.place() as usize;
            self.world.step();
            self.publish_unlogged(open, &Change::Write(at, bytes(&self.world, 64)));
            if self.world.rng.one_in(2) {
                self.sync(open, Scope::Whole);
            }
        }
        self.engine.release(self.who(), open.name);
        self.world.files.borrow_mut()[open.index].holders.remove(&self.thread);
    }

    /// fallocate, splice and their like.
    pub(super) fn pass(&self, open: &Open) {
        let at = self.place() as usize;
        let change = Change::Write(at, bytes(&self.world, 800));
        self.begin(open, change.clone());
        let sync = || certain::fdatasync(open.cache.as_fd());
        let out = self.engine.take_out(self.who(), open.name, sync);
        self.world.step();
        self.publish_unlogged(open, &change);
        out.finish(sync);
    }

    pub(super) fn unlink(&self, open: &Open) {
        let sync = || certain::fdatasync(open.cache.as_fd());
        let out = self.engine.take_out(self.who(), open.name, sync);
        self.world.files.borrow_mut()[open.index].unlinked = true;
        self.world.point();
        out.unlinked();
    }
}
