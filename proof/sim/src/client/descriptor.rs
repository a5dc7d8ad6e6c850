//! A file that a thread has open for writing.

use crate::world::World;

/// A file is open for writing; the kernel closes the files of the dead.
pub struct Descriptor<'a> {
    world: &'a World,
    index: usize,
}

impl<'a> Descriptor<'a> {
    /// Opens it.
    pub fn open(world: &'a World, index: usize) -> Self {
        world.files.borrow_mut()[index].open += 1;
        Self { world, index }
    }
}

impl Drop for Descriptor<'_> {
    fn drop(&mut self) {
        self.world.files.borrow_mut()[self.index].open -= 1;
    }
}

/// A change of which the kernel did a part, and whose file has not left the log yet: what the log says of it and what
/// the file holds differ.
pub(super) struct Partly<'a>(Descriptor<'a>);

impl<'a> Partly<'a> {
    /// It begins.
    pub(super) fn begin(world: &'a World, index: usize) -> Self {
        world.files.borrow_mut()[index].partly += 1;
        Self(Descriptor::open(world, index))
    }
}

impl Drop for Partly<'_> {
    fn drop(&mut self) {
        self.0.world.files.borrow_mut()[self.0.index].partly -= 1;
    }
}
