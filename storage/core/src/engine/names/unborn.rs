//! A new directory enters the log before the disk has it.
//!
//! The log of the one above has its name since it was made, or since that one entered. Its own gets a record of each name that
//! is in it by then. So nothing waits for the disk: recovery makes such a directory again, if the disk never had it, and then
//! what is in it.

use super::{Place, Turn};
use crate::format::{Attributes, Handle, NameChange};

/// A directory that was made lately.
#[derive(Clone, Copy, Debug)]
pub struct New {
    /// Its identity.
    pub file: Handle,
    /// Its attributes now.
    pub attributes: Attributes,
    /// Its st_dev and st_ino.
    pub inode: (u64, u64),
}

/// What is in it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// By this name.
    pub name: Vec<u8>,
    /// Its identity.
    pub file: Handle,
    /// The attributes for a copy that is made again.
    pub attributes: Attributes,
    /// What a symbolic link says.
    pub target: Option<Vec<u8>>,
}

impl Entry {
    /// The record of its name.
    fn made(&self) -> NameChange<'_> {
        let (name, file, attributes) = (self.name.as_slice(), self.file, self.attributes);
        match &self.target {
            Some(target) => NameChange::Symlink { name, file, attributes, target },
            None => NameChange::Made { name, file, attributes },
        }
    }
}

impl<P: Place> Turn<'_, P> {
    /// A new directory in this one, where its name stays what it is, enters the log. `entries`: what is in it whose names are
    /// kept; `None` if that is too much, or something that no record can make again. `register` gives it a slot, and has it
    /// [admitted](crate::Registered::admit_with_names) with what it gets. `None`: it stays outside, and its next sync is real.
    pub fn takes_in<R>(
        &self,
        new: &New,
        entries: &dyn Fn() -> Option<Vec<Entry>>,
        register: impl FnOnce(&dyn Fn(&Turn<'_, P>) -> bool) -> R,
    ) -> Option<R> {
        let engine = self.engine;
        let is_as_made = || engine.is_as_made(new.inode, &new.file, &new.attributes);
        // The look before spares a directory that cannot enter so the entry, and its maker a second sync.
        if entries().is_none() || !is_as_made() {
            return None;
        }
        let entered = register(&|turn| {
            // Asked again: whoever takes a name away says so before, and looks for this directory afterwards.
            let entries = entries().filter(|_| is_as_made());
            entries.is_some_and(|entries| entries.iter().all(|entry| turn.log(&entry.made())))
        });
        engine.was_synced(new.inode);
        Some(entered)
    }
}
