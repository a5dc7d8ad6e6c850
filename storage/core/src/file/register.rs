//! What a slot holds of a file from its registration on, and after the file has lost it.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::path::Path;

use seawall_media::Identity;
use seawall_stats::Class;

use super::{FileRef, Flag, Slot};

/// A file to be registered.
pub struct Newcomer<'a> {
    /// Index of the registered directory that it lies under.
    pub root: u32,
    /// Its identity.
    pub identity: &'a Identity,
    /// Where it is, relative to the root. A hint.
    pub hint: &'a Path,
    /// st_dev and st_ino.
    pub inode: (u64, u64),
    /// The class to which its waits are counted.
    pub class: Class,
    /// Its state after its registration.
    pub begins: Begins,
    /// A sync of its directory makes its new name durable ([`Flag::NAMED_BY_DIRECTORY`]).
    pub is_named_by_directory: bool,
    /// A directory: its records are changes of names in it.
    pub is_directory: bool,
}

/// A file's state after its registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// Its first fsync is real, and takes it into the log.
    Outside,
    /// Its first write is logged. Its content and its name are durable already.
    InLog,
    /// The same for an empty file of which the disk may know nothing yet: its name is in the log of its directory.
    InLogWithName,
    /// A directory of which the disk may know nothing yet: its name is in the log of the one above it, and the names in it
    /// get records before anybody else finds it.
    Unborn,
    /// Its first write should have been logged, but the disk refused the sync that comes first: every write of it
    /// fails.
    Failed,
}

impl Begins {
    pub(crate) fn flags(self) -> Flag {
        match self {
            // Only a whole fsync covers what changed before the file was watched, its name or its mode.
            Self::Outside => Flag::SYNC_NEEDED,
            Self::InLog => Flag::ATOMIC,
            Self::InLogWithName => Flag::ATOMIC | Flag::UNBORN,
            Self::Unborn => Flag::UNBORN,
            Self::Failed => Flag::ATOMIC | Flag::FAILED | Flag::SYNC_NEEDED,
        }
    }
}

impl Slot<'_> {
    /// From now on the slot's words belong to this file, all of whose records will be newer than `on_disk`.
    pub(crate) fn begin(self, newcomer: &Newcomer<'_>, file: FileRef, on_disk: u64) {
        debug_assert!(self.is_vacant(), "a slot has one file at a time");
        self.newest().store(on_disk, Relaxed);
        self.on_disk().store(on_disk, Relaxed);
        self.sticky().store(0, Relaxed);
        self.solid_bytes().store(0, Relaxed);
        self.known_change().store(0, Relaxed);
        self.newest_content().store(0, Relaxed);
        self.linked_out().store(0, Relaxed);
        self.unsynced().store(0, Relaxed);
        self.root_index().store(newcomer.root, Relaxed);
        self.class_number().store(newcomer.class as u32, Relaxed);
        self.dev().store(newcomer.inode.0, Relaxed);
        self.ino().store(newcomer.inode.1, Relaxed);
        let counters = [
            self.absorbed(),
            self.real_syncs(),
            self.writes(),
            self.bytes(),
            self.untracked_writes(),
            self.left(),
        ];
        counters.iter().for_each(|counter| counter.store(0, Relaxed));
        self.uses().store(file.generation, SeqCst);
    }

    /// The file counts from now on, with these flags.
    pub(crate) fn counts(self, begins: Flag) {
        self.flags().store((Flag::USED | begins).0, SeqCst);
    }

    /// Processes that remember the file find out that the slot no longer belongs to it.
    ///
    /// A thread that lost the lock alive may go on at any time, with what it knows of this file. Its slot gets no other
    /// file as long as the run-time memory lives.
    pub(crate) fn end(self) {
        self.uses().fetch_add(1, SeqCst);
        self.clear(Flag::ALL.without(Flag::STUCK));
    }

    /// True if the slot can be given to another file.
    pub(crate) fn is_vacant(self) -> bool {
        !self.state().has(Flag::USED | Flag::STUCK)
    }
}
