//! The log of a simulated machine, as a disk's process joins it.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::rc::Rc;

use seawall_core::client::Course;
use seawall_core::{Engine, FileRef, Owner};
use seawall_disk::{Joined, Log};

use crate::names;
use crate::world::World;

/// The way of one process to it.
pub struct Through {
    /// The machine.
    pub world: Rc<World>,
    /// The process's engine.
    pub engine: Rc<Engine>,
    /// Its client slot.
    pub client: u32,
}

impl Log for Through {
    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn me(&self) -> Owner {
        World::owner(self.client, self.world.thread.get())
    }

    fn may_ask(&self) -> bool {
        true
    }

    /// Waits for a daemon that has taken it in: it does so without being asked.
    fn register(&self, fd: BorrowedFd<'_>, _is_atomic: bool) -> Course {
        let Some(index) = self.world.file_of(fd.as_raw_fd()) else { return Course::Leave };
        let (dev, ino) = names::inode(index);
        while !self.world.is_over() {
            if let Some(file) = self.world.peek(|| self.engine.find(dev, ino)) {
                return Course::Log(file);
            }
            self.world.give_way();
        }
        Course::Leave
    }

    /// No guest moves here.
    fn let_go(&self, _file: FileRef) -> bool {
        false
    }

    fn caching(&self) -> Option<&Joined> {
        None
    }

    fn leave(&self) {}
}
