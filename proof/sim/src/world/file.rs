//! A file of the simulated machine, and the journal of the file system that all of them lie on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::rc::Rc;

use seawall_core::FileRef;
use seawall_media::Identity;

use crate::metadata::Metadata;
use crate::{Disk, Model, Platter};

/// A managed file.
pub struct SimFile {
    /// The page cache: a memory file, so that positions and sizes are the kernel's.
    pub cache: Rc<File>,
    /// Below it.
    pub disk: Disk,
    /// What it should hold.
    pub model: Model,
    /// The same for an image, in its guest's terms: the model knows nothing of its content.
    pub platter: Option<Platter>,
    /// Its present slot.
    pub name: Option<FileRef>,
    /// Its identity.
    pub identity: Identity,
    /// Its last name is gone.
    pub unlinked: bool,
    /// Threads that have it open for writing.
    pub open: u32,
    /// The daemon keeps it from being opened.
    pub leased: bool,
    /// Its cache is written by a descriptor that does not tell us.
    pub watched: bool,
    /// A process died inside a change of it.
    pub wounded: bool,
    /// Threads inside a change of it that the kernel did a part of.
    pub partly: u32,
    /// Neither its inode nor its name was ever synced.
    pub fresh: bool,
    /// Renames of it.
    pub renamed: Metadata,
    /// Changes of its attributes.
    pub touched: Metadata,
    /// It was out of the log for want of room when last looked at.
    pub left_full: bool,
    /// It was outside the log for a reason when last looked at, and nobody took it back yet.
    pub excused: bool,
    /// Threads that hold it out of the log, or died while they did: then somebody has to take it back first.
    pub holders: BTreeSet<usize>,
    /// Write-backs of it that failed. If it is removed then, its records may be refused by name.
    pub errors: u64,
    /// How many of them each open description has reported, by logical thread; the daemon's threads are one more.
    pub(super) told: BTreeMap<usize, u64>,
    /// The thread that got such an error last.
    pub(super) told_last: Option<usize>,
}

impl SimFile {
    /// Is this a content that a crash now may leave?
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, content: &[u8]) -> Result<(), String> {
        match &self.platter {
            None => self.model.check(content),
            Some(_) if self.model.unpromised.is_some() => Ok(()),
            Some(platter) => platter.check(content),
        }
    }

    /// Recovery ended with this content.
    pub fn recovered(&mut self, content: Vec<u8>) {
        if let Some(platter) = &mut self.platter {
            platter.recovered(content.clone());
        }
        self.model.recovered(content);
    }

    /// Looks at what a death inside a change left: all of a change or nothing of it, unless the log lacked one, or the kernel lost
    /// pages.
    pub fn found(&mut self, for_certain: bool) {
        let may_be_half = self.errors > 0 || self.model.failed || self.has_unlogged() || self.partly > 0;
        self.model.found(self.disk.cache(), for_certain, may_be_half);
    }

    /// True if a change of it may be in no log.
    pub fn has_unlogged(&self) -> bool {
        self.model.has_unlogged() || self.platter.as_ref().is_some_and(Platter::has_unlogged)
    }
}

/// The state of the file system's journal. Once a commit failed, none succeeds any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsJournal {
    /// All commits succeeded.
    Whole,
    /// One did not, and only whoever waited for it knows.
    Aborted,
    /// The file system knows too.
    Noticed,
}
