//! Into a file, if it is still the one that a descriptor remembers.

use super::attach::Engine;
use crate::Owner;
use crate::file::{Entered, FileRef, Inside, Slot};

/// How a file was entered that may be known no longer.
pub(crate) enum Entering<'a> {
    /// Alone, until it is dropped.
    Alone(Inside<'a>),
    /// This thread is inside already.
    Nested(Slot<'a>),
    /// The slot is not the file's any more.
    Gone,
}

impl Engine {
    /// Enters a file, waiting as long as it takes.
    #[inline]
    pub(crate) fn enter(&self, who: Owner, file: FileRef) -> Entering<'_> {
        let Some(slot) = self.file(file) else { return Entering::Gone };
        match slot.enter(self.shm(), who) {
            Entered::Nested => Entering::Nested(slot),
            Entered::Alone(inside) if slot.is_of(file) => Entering::Alone(inside),
            // It lost its slot meanwhile, so nobody has it open any more: the kernel says what a descriptor is.
            Entered::Alone(_) => Entering::Gone,
        }
    }
}
