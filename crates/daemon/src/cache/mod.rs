//! The block cache's life beside the log's: whose zone it is, which files are entered, who may not write them.
//!
//! ```text
//! start ─ zone made, found again, or taken over ─▶ files entered, watched, noted, reaped ─▶ left, closed
//! ```
//!
//! Invariants: a zone is recovered or made anew only when no process has it mapped. A file is served only while this
//! daemon watches for writers without the preload; a stranger's open suspends it first. While fronts live that have no
//! zone there is no cache: they write without a word.
//!
//! Not handled here: what a block is and why it is never stale (`seawall-cache`), who reads and writes (`preload`).

mod aligned;
mod bytes;
mod death;
mod disk;
mod enter;
mod finishing;
mod keeping;
mod options;
mod place;
mod policies;
mod prewarm;
mod resize;
mod rules;
mod status;
mod store;
mod strangers;
mod takeover;
mod writing;
mod zone;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use seawall_cache::advisory::Advisory;
use seawall_cache::shared::{Cache, CachedFile, OperationOwner};
use seawall_media::Medium;
use seawall_media::locks::lock;

use crate::parts::files::reopen;
use crate::state::Daemon;

pub use options::{CacheOptions, default_path};
pub use place::{check, check_place, remove};
pub use policies::{Asked, Directory, FilesStatus, Listed, PolicyStatus, Wanted};
pub use prewarm::{Prewarm, Prewarmed};
pub use resize::{Resize, Resized};
pub use rules::{Choice, Covers, Rule};
pub use status::{AdvisoryStatus, CacheStatus, CachedFileStatus};

pub(crate) use death::announce;
pub(crate) use enter::{capacity, enter};
pub(crate) use finishing::Announced;
pub(crate) use keeping::{close, leave_all, reap, run};
pub(crate) use policies::{list as policies, set as set_policies};
pub(crate) use prewarm::prewarm;
pub(crate) use resize::resize;
pub(crate) use status::status;
pub use store::is_device;
pub(crate) use strangers::{look_for_writers, opened, opened_unseen, review, suspend_those_of};
pub(crate) use takeover::take_over;
pub(crate) use writing::run as bring;
pub use zone::CacheError;

/// A cache that is in use.
pub(crate) struct Zone {
    pub cache: Cache,
    pub path: PathBuf,
    /// Bytes that it can have.
    pub most: u64,
    /// Bytes of what is mapped: all of it, or the index of one on a disk.
    len: u64,
    pub medium: Medium,
    /// Where its blocks lie, if not in the mapping.
    disk: Option<disk::Disk>,
    /// What is mapped; holds the lock, if there is no disk.
    file: File,
    /// For clients: a descriptor that does not share the lock, which would outlive us in their mappings.
    for_clients: File,
    entered: Mutex<BTreeMap<u32, Arc<Entered>>>,
    /// Entering and judging strangers exclude each other.
    entering: Mutex<()>,
    suspended: Mutex<strangers::Suspended>,
    advisory: Mutex<Advisory>,
    policies: policies::Policies,
    /// Blocks that this daemon brings, and the end of all files, exclude each other: a zone that is closed stays as it is.
    bringing: Mutex<()>,
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
    fn new(
        cache: Cache,
        file: File,
        path: PathBuf,
        (medium, most): (Medium, u64),
        disk: Option<disk::Disk>,
    ) -> Result<Self, CacheError> {
        let for_clients = reopen(&file, true).map_err(zone::failed(&path, "opening"))?;
        Ok(Self {
            most,
            len: file.metadata().map_err(zone::failed(&path, "asking for the size of"))?.len(),
            medium,
            advisory: Mutex::new(Advisory::new(cache.blocks())),
            policies: policies::Policies::load(disk.as_ref().map_or(&path, |disk| &disk.beside)),
            disk,
            bringing: Mutex::default(),
            cache,
            path,
            file,
            for_clients,
            entered: Mutex::default(),
            entering: Mutex::default(),
            suspended: Mutex::default(),
        })
    }

    /// What a client maps, and how much of it. The client has been greeted: whoever looks under the same lock whether
    /// anybody is attached has either seen it, or is done.
    pub fn lend(&self) -> (BorrowedFd<'_>, u64) {
        let _alone = lock(&self.entering);
        (self.for_clients.as_fd(), self.len)
    }

    /// What a client reads blocks by that lie on a disk.
    pub fn disk(&self) -> Option<BorrowedFd<'_>> {
        self.disk.as_ref().map(|disk| disk.store.lend())
    }

    fn all(&self) -> Vec<Arc<Entered>> {
        lock(&self.entered).values().cloned().collect()
    }

    fn by_inode(&self, dev: u64, ino: u64) -> Option<Arc<Entered>> {
        lock(&self.entered).values().find(|entered| (entered.dev, entered.ino) == (dev, ino)).cloned()
    }

    fn insert(&self, entered: Entered) {
        lock(&self.entered).insert(entered.reference.slot, Arc::new(entered));
    }

    fn remove(&self, slot: u32) {
        lock(&self.entered).remove(&slot);
        lock(&self.suspended).forget(slot);
    }

    /// True if the file is watched for the cache.
    pub fn watches(&self, dev: u64, ino: u64) -> bool {
        self.by_inode(dev, ino).is_some()
    }
}

/// Takes the zone into use, before any client can ask for it.
///
/// # Errors
/// [`CacheError`]: it is needed, and there is no place for it.
pub(crate) fn open(daemon: &mut Daemon, wanted: Option<&CacheOptions>) -> Result<(), CacheError> {
    let Some(wanted) = wanted else { return Ok(()) };
    let zone = match zone::open(daemon, wanted) {
        Ok(zone) => zone,
        Err(e) if wanted.is_needed => return Err(e),
        Err(e) => {
            go_without(daemon, e.to_string());
            return Ok(());
        }
    };
    daemon.engine.shm().header().cache_zone().store(zone.cache.id(), std::sync::atomic::Ordering::SeqCst);
    daemon.cache = Some(zone);
    Ok(())
}

/// One was asked for, and there is none.
fn go_without(daemon: &mut Daemon, why: String) {
    daemon.log.say(format!("WITHOUT the block cache: {why}"));
    daemon.without_cache = Some(why);
}

/// This daemon among the owners of operations.
pub(crate) fn me(engine: &seawall_core::Engine, slot: u32) -> OperationOwner {
    let generation = engine.shm().client(slot);
    let generation = generation.map_or(0, |c| c.generation().load(std::sync::atomic::Ordering::Acquire));
    OperationOwner::of_client(
        slot,
        generation,
        rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(),
    )
}
