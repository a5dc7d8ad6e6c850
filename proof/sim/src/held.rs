//! The daemon's descriptors of directories.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::world::World;

/// Its descriptors of directories: as long as one is open, no other one gets its inode number.
pub type Held = RefCell<BTreeMap<usize, Opened>>;

/// A directory is open; the kernel closes those of the dead.
pub struct Opened {
    world: Rc<World>,
    inode: usize,
}

impl Opened {
    /// Opens it. `None` for one from the beginning, which nobody removes.
    pub fn of(world: &Rc<World>, folder: usize) -> Option<Self> {
        let inode = world.shelf().tree.borrow().inode_of(folder)?;
        world.shelf().tree.borrow_mut().open(inode, true);
        Some(Self { world: Rc::clone(world), inode })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.world.shelf().tree.borrow_mut().open(self.inode, false);
    }
}
