//! Files get slots, lose them, and are forgotten.

use std::os::fd::AsFd;
use std::rc::Rc;

use seawall_core::file::{Begins, Flag, Newcomer};
use seawall_core::{Errno, FileRef, Scope, certain};
use seawall_stats::Class;

use super::Daemon;
use crate::names;
use crate::world::World;

/// While it lives nobody opens the file for writing. The kernel ends those of the dead.
struct Lease<'a> {
    world: &'a World,
    index: usize,
}

impl<'a> Lease<'a> {
    fn take(world: &'a World, index: usize) -> Self {
        world.files.borrow_mut()[index].leased = true;
        Self { world, index }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.world.files.borrow_mut()[self.index].leased = false;
    }
}

impl Daemon {
    /// Registers a file that has no slot.
    pub fn register(&self) {
        let found = self.world.files.borrow().iter().position(|f| f.name.is_none() && !f.unlinked);
        let Some(index) = found else { return };
        // Content, inode and name, before the file can have records; see `seawall-daemon`, `register`.
        let refused = self.world.atomic && self.world.real_sync(index, Scope::Whole).is_err();
        let identity = self.world.files.borrow()[index].identity.clone();
        let registered = self.engine.register(&Newcomer {
            root: 0,
            identity: &identity,
            hint: &names::hint(index),
            inode: names::inode(index),
            class: Class::Other,
            begins: match self.world.atomic {
                true if refused => Begins::Failed,
                true => Begins::InLog,
                false => Begins::Outside,
            },
            is_named_by_directory: self.world.is_named_by_directory,
            is_directory: false,
        });
        let Ok(registered) = registered else { return };
        let name = registered.file();
        self.world.files.borrow_mut()[index].name = Some(name);
        let admitted = registered.admit(self.who(), || self.sync_for_certain(index));
        self.world.tell(|| format!("file {index} registered in slot {}: {admitted:?}", name.slot));
        if index % 2 == 1 {
            self.sync_ahead(index, name);
        }
    }

    /// A sync before anybody asked for one, as for the segments of PostgreSQL's log; see `seawall-daemon`, `ahead`.
    fn sync_ahead(&self, index: usize, name: FileRef) {
        let cache = Rc::clone(&self.world.files.borrow()[index].cache);
        let real = || {
            self.world.real_sync(index, Scope::Whole).map_err(Errno::from_raw_os_error)?;
            certain::check(cache.as_fd())
        };
        if !self.engine.absorbs(name, Scope::Whole) {
            let done = self.engine.sync(self.who(), name, Scope::Whole).by(|_| real());
            if done.is_err() {
                self.engine.distrust(name);
            }
            self.world.tell(|| format!("file {index} synced ahead: {done:?}"));
        }
    }

    /// As the daemon's own sync: a success is believed only while the file system's journal lives.
    fn sync_for_certain(&self, index: usize) -> Result<(), Errno> {
        let cache = Rc::clone(&self.world.files.borrow()[index].cache);
        certain::fdatasync(cache.as_fd())
    }

    /// Takes the slot from a file that nobody has open; whoever wants to write it waits until it is registered
    /// again. A lease keeps it closed meanwhile.
    pub fn evict(&self) {
        let files = self.world.files.borrow();
        let idle: Vec<(usize, FileRef)> = files
            .iter()
            .enumerate()
            .filter_map(|(i, f)| Some((i, f.name.filter(|_| f.open == 0 && !f.unlinked)?)))
            .collect();
        drop(files);
        if idle.is_empty() {
            return;
        }
        let (index, name) = idle[self.world.rng.below(idle.len() as u64) as usize];
        let sync = || self.sync_for_certain(index);
        let lease = Lease::take(&self.world, index);
        if !self.engine.evict(self.who(), name, sync) {
            return;
        }
        self.world.files.borrow_mut()[index].name = None;
        drop(lease);
        self.world.tell(|| format!("file {index} evicted from slot {}", name.slot));
        self.world.count(|c| c.evicted += 1);
    }

    /// Forgets files whose last name is gone, and lets others be created in their place.
    pub fn forget_unlinked(&self) {
        if self.world.shelf.is_some() {
            return self.forget_folders();
        }
        for slot in self.engine.slots().filter(|slot| slot.state().has(Flag::UNLINKED)) {
            self.engine.forget(self.who(), slot.number());
            if let Some(index) = self.world.file_in(slot.number()) {
                self.world.tell(|| format!("file {index} forgotten"));
                self.world.files.borrow_mut()[index].name = None;
                self.world.create_file();
            }
        }
    }
}
