//! A cache that is in use, and the files that are entered.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rustix::process::{Resource, getrlimit};
use seawall_cache::advisory::Advisory;
use seawall_cache::shared::{Cache, CachedFile, Identity};
use seawall_media::Medium;
use seawall_media::locks::{Turns, lock};

use super::disk::Disk;
use super::error::{CacheError, failed};
use super::policies::Policies;
use super::room::room_of;
use super::suspended::Suspended;
use crate::parts::files::reopen;

/// A cache that is in use.
pub(crate) struct Zone {
    pub(super) cache: Cache,
    pub(super) path: PathBuf,
    /// Bytes that it can have.
    pub(super) most: u64,
    /// Bytes of what is mapped: all of it, or the index of one on a disk.
    len: u64,
    pub(super) medium: Medium,
    /// Where its blocks lie, if not in the mapping.
    pub(super) disk: Option<Disk>,
    /// What is mapped; holds the lock, if there is no disk.
    file: File,
    /// For clients: a descriptor that does not share the lock, which would outlive us in their mappings.
    for_clients: File,
    entered: Mutex<BTreeMap<u32, Arc<Entered>>>,
    /// Entering and judging strangers exclude each other.
    pub(super) entering: Turns,
    pub(super) suspended: Mutex<Suspended>,
    pub(super) advisory: Mutex<Advisory>,
    pub(super) policies: Policies,
    /// Blocks that this daemon brings, and the end of all files, exclude each other: a zone that is closed stays as it is.
    pub(super) bringing: Mutex<()>,
}

/// A file that is entered.
pub(crate) struct Entered {
    pub reference: CachedFile,
    /// The daemon's descriptor, for reading.
    pub file: File,
    pub dev: u64,
    pub ino: u64,
}

impl Zone {
    /// A zone that is whole. `most` is what the cache can have.
    pub(super) fn new(
        cache: Cache,
        file: File,
        path: PathBuf,
        (medium, most): (Medium, u64),
        disk: Option<Disk>,
    ) -> Result<Self, CacheError> {
        let for_clients = reopen(&file, true).map_err(failed(&path, "open"))?;
        Ok(Self {
            most,
            len: file.metadata().map_err(failed(&path, "read the size of"))?.len(),
            medium,
            advisory: Mutex::new(Advisory::new(cache.blocks())),
            policies: Policies::load(disk.as_ref().map_or(path.as_path(), Disk::beside)),
            disk,
            bringing: Mutex::default(),
            cache,
            path,
            file,
            for_clients,
            entered: Mutex::default(),
            entering: Turns::default(),
            suspended: Mutex::default(),
        })
    }

    /// What a client maps, and how much of it. The client has been greeted: whoever looks under the same lock whether
    /// anybody is attached has either seen it, or is done.
    pub fn lend(&self) -> (BorrowedFd<'_>, u64) {
        let _alone = self.entering.take();
        (self.for_clients.as_fd(), self.len)
    }

    /// What a client reads blocks by that lie on a disk.
    pub fn disk(&self) -> Option<BorrowedFd<'_>> {
        self.disk.as_ref().map(|disk| disk.store().lend())
    }

    /// Serves a file again that nobody watched for a while: with its blocks if it is as it was noted.
    pub(super) fn resume(&self, file: CachedFile, now: &Identity) {
        self.cache.resume(file, self.cache.is_as_noted(file, now));
    }

    /// How many files are entered.
    pub(super) fn count(&self) -> usize {
        lock(&self.entered).len()
    }

    /// The file in this slot.
    pub(super) fn get(&self, slot: u32) -> Option<Arc<Entered>> {
        lock(&self.entered).get(&slot).cloned()
    }

    /// All files that are entered.
    pub(super) fn all(&self) -> Vec<Arc<Entered>> {
        lock(&self.entered).values().cloned().collect()
    }

    /// The file with this device and inode.
    pub(super) fn by_inode(&self, dev: u64, ino: u64) -> Option<Arc<Entered>> {
        lock(&self.entered).values().find(|entered| (entered.dev, entered.ino) == (dev, ino)).cloned()
    }

    pub(super) fn insert(&self, entered: Entered) {
        lock(&self.entered).insert(entered.reference.slot, Arc::new(entered));
    }

    pub(super) fn remove(&self, slot: u32) {
        lock(&self.entered).remove(&slot);
        lock(&self.suspended).forget(slot);
    }

    /// True if the file is watched for the cache.
    pub fn watches(&self, dev: u64, ino: u64) -> bool {
        self.by_inode(dev, ino).is_some()
    }

    /// For a block that this daemon brings by itself: true if it may.
    pub(super) fn may_bring(&self) -> bool {
        self.disk.as_ref().is_none_or(|disk| disk.may_write(&self.cache))
    }

    /// Bytes of the cache now.
    pub fn size(&self) -> u64 {
        room_of(self.cache.layout(), self.cache.ways(), self.most)
    }

    /// What its blocks lie in.
    pub(super) fn room(&self) -> &File {
        self.disk.as_ref().map_or(&self.file, |disk| disk.store().file())
    }
}

/// Files that can be entered at a time, each with a descriptor of ours: a third of those we may have.
pub(crate) fn capacity() -> usize {
    (getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 3) as usize
}
