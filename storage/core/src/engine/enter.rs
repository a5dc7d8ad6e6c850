//! Entering a file, if it is still the one that a descriptor remembers.

#[cfg(feature = "std")]
use std::sync::OnceLock;

use super::attach::Engine;
use crate::Owner;
use crate::file::{Entered, FileRef, Inside, Slot};

/// How a file was entered that may no longer be known.
pub(crate) enum Entering<'a> {
    /// Alone, until it is dropped.
    Alone(Inside<'a>),
    /// This thread is inside already.
    Nested(Slot<'a>),
    /// The slot no longer belongs to the file.
    Gone,
}

impl Engine {
    /// Enters a file, waiting as long as it takes.
    #[inline]
    pub(crate) fn enter(&self, who: Owner, file: FileRef) -> Entering<'_> {
        let Some(slot) = self.file(file) else { return Entering::Gone };
        match self.enter_slot(slot, who) {
            Entered::Nested => Entering::Nested(slot),
            Entered::Alone(inside) if slot.is_of(file) => Entering::Alone(inside),
            // It lost its slot meanwhile, so nobody has it open any more: the kernel decides about the descriptor.
            Entered::Alone(_) => Entering::Gone,
        }
    }

    /// Enters a slot, whichever file has it.
    #[inline]
    pub(crate) fn enter_slot<'a>(&'a self, slot: Slot<'a>, who: Owner) -> Entered<'a> {
        slot.enter_or(self.shm(), who, &|| self.finisher.finish(slot.number()))
    }

    /// Somebody has opened the file, and may look at what is in it. What a process had published in part when it died is whole
    /// first: without Seawall the dead write no more, and a program that is started anew may go by what it finds. Waits as long
    /// as whoever changes the file would, and for nothing else. `who` is asked for if there is something to wait for.
    pub fn opens(&self, file: FileRef, who: impl FnOnce() -> Option<Owner>) {
        let is_half = |slot: &Slot<'_>| slot.holder() != 0 && slot.half_published(self.shm()).is_some();
        if self.file(file).as_ref().is_some_and(is_half)
            && let Some(who) = who()
        {
            // What is left of a lost holder stays for the next one who changes the file.
            drop(self.enter(who, file));
        }
    }

    /// From now on, a thread of this process that waits for a holder which died in its publish calls `finish` with the
    /// file's slot. That call should lead to [`reap::finish_in`](crate::reap::finish_in): the daemon's threads must not
    /// wait for each other.
    #[cfg(feature = "std")]
    pub fn finishes_by(&self, finish: impl Fn(u32) + Send + Sync + 'static) {
        // If there is a finisher already, it does the same.
        let _ = self.finisher.0.set(Box::new(finish));
    }
}

/// How this process finishes what the dead left half published: the daemon does it; any other process waits for the
/// daemon.
#[derive(Default)]
pub(super) struct Finisher(#[cfg(feature = "std")] OnceLock<Box<dyn Fn(u32) + Send + Sync>>);

impl Finisher {
    #[cold]
    fn finish(&self, _slot: u32) {
        #[cfg(feature = "std")]
        if let Some(finish) = self.0.get() {
            finish(_slot);
        }
    }
}
