//! What the verbs of the media say while they work.

use seawall_core::Scope;
use seawall_media::sim::Observer;

use super::file::FsJournal;
use super::{EIO, World};
use crate::fiber;
use crate::image::visible;
use crate::pending::LINE;
use crate::plan::{Mutant, Site};

/// `storage/core/src/persist.rs:18`.
fn named(site: seawall_media::sim::Site) -> Site {
    let file = site.file();
    let short = file.rfind("storage/").map_or(file, |at| &file[at..]);
    format!("{short}:{}", site.line())
}

impl World {
    fn surveyed(&self, fence: bool, site: seawall_media::sim::Site) {
        if self.survey {
            *self.sites.borrow_mut().entry((fence, named(site))).or_default() += 1;
        }
    }
}

impl Observer for World {
    fn stored(&self, base: usize, at: usize, len: usize, _site: seawall_media::sim::Site) {
        let elsewhere = self.image.note(base, at, len) || self.quiet.get() || !self.is_pool(base);
        if !elsewhere {
            self.has_memory("stored", at, len);
        }
        if elsewhere || self.block.is_some() {
            return;
        }
        self.pending.borrow_mut().stored(at, len, |line| visible(&self.view.borrow(), line));
    }

    fn flushed(&self, base: usize, at: usize, len: usize, site: seawall_media::sim::Site) {
        if self.quiet.get() || !self.is_pool(base) || len == 0 {
            return;
        }
        if self.block.is_some() {
            return self.step();
        }
        self.surveyed(false, site);
        if !matches!(&self.mutant, Mutant::Flush(broken) if *broken == named(site)) {
            self.pending.borrow_mut().flushed(at, len, self.thread.get());
        }
        self.point();
    }

    fn fenced(&self, site: seawall_media::sim::Site) {
        if self.quiet.get() {
            return;
        }
        self.burn_fence();
        self.step();
        if self.block.is_some() {
            return;
        }
        self.surveyed(true, site);
        self.tell(|| format!("fence at {}", named(site)));
        if !matches!(&self.mutant, Mutant::Fence(broken) if *broken == named(site)) {
            let mut pending = self.pending.borrow_mut();
            self.peek(|| {
                pending.fenced(self.thread.get(), |line, unit, value| self.image.persist(line, unit, value));
            });
        }
        self.point();
    }

    fn reads(&self, base: usize, at: usize, len: usize) {
        if let Some(line) = self.poison.get()
            && self.image.is_at(base)
            && (at / LINE..(at + len).div_ceil(LINE)).contains(&(line as usize))
        {
            self.poison.set(None);
            fiber::kill();
        }
        if !self.quiet.get() && self.is_pool(base) {
            self.has_memory("read", at, len);
        }
    }

    fn touched(&self, base: usize) {
        // The words of a desk lie behind the pool.
        if !self.quiet.get() && (self.block.is_some() || !self.is_pool(base)) {
            self.step();
        }
    }

    fn waits(&self) -> bool {
        self.give_way();
        fiber::inside()
    }

    fn syncs(&self, fd: i32) -> Option<Result<(), i32>> {
        let index = self.file_of(fd)?;
        Some(self.real_sync(index, Scope::Data))
    }

    fn publishes(&self, fd: i32, at: u64, bytes: &[u8]) -> Option<Result<(), i32>> {
        Some(self.publish(self.file_of(fd)?, at, bytes))
    }

    fn publishes_zeros(&self, fd: i32, at: u64, len: u64) -> Option<Result<(), i32>> {
        Some(self.publish_zeros(self.file_of(fd)?, at, len))
    }

    fn writes_block(&self, fd: i32, position: u64, bytes: &[u8]) -> Option<Result<(), i32>> {
        Some(match &self.area {
            Some(disk) => self.write_area(disk, position, bytes),
            None => self.write_block(fd, position, bytes),
        })
    }

    fn process(&self) -> Option<u32> {
        Some(self.ids.borrow()[self.thread.get()])
    }

    fn is_dead(&self, process: u32) -> Option<bool> {
        Some(!self.ids.borrow().contains(&process))
    }

    /// A stopped leader is soon replaced, and any other one now and then: whoever replaces it may be mistaken.
    fn replaces(&self, process: u32) -> Option<bool> {
        let leader = self.ids.borrow().iter().position(|id| *id == process);
        let is_stopped = leader.is_some_and(|thread| self.asleep.borrow()[thread] > 0);
        let replaces = self.rng.one_in(if is_stopped { 2 } else { 60 });
        if replaces {
            self.count(|c| c.replaced += 1);
            self.tell(|| format!("the leader, process {process}, is replaced"));
        }
        Some(replaces)
    }

    /// Whoever looks may be mistaken: the holder may go on at its next step.
    fn halts(&self) -> Option<bool> {
        let halts = self.rng.one_in(150);
        if halts {
            self.count(|c| c.overtaken += 1);
            self.tell(|| "the holder of the lock seems to be stopped".into());
        }
        Some(halts)
    }

    fn changed(&self, fd: i32) -> Option<u64> {
        let shelf = self.shelf.as_ref()?;
        Some(shelf.tree.borrow().changed(shelf.folder_of(fd)?))
    }

    fn confirms(&self, fd: i32) -> Option<Result<(), i32>> {
        if let Some(shelf) = &self.shelf
            && let Some(folder) = shelf.folder_of(fd)
        {
            // It is found out by a change of the directory's times.
            shelf.tree.borrow_mut().touch(folder);
            return Some(Ok(()));
        }
        let index = self.file_of(fd)?;
        if self.journal.get() == FsJournal::Whole {
            return Some(Ok(()));
        }
        self.journal.set(FsJournal::Noticed);
        // The commit may have failed after this file's own sync: its records stay all the same.
        self.files.borrow_mut()[index].errors += 1;
        Some(Err(EIO))
    }
}
