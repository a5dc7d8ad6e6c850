//! The daemon's own descriptors of managed files: for destaging, for SyncFile, for finishing dead writes.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::fs::OFlags;
use seawall_core::FileRef;
use seawall_core::destage::Files;
use seawall_core::reap::Writable;
use seawall_media::locks::lock;

use crate::ages::Ages;
use crate::cache::{self, Announced};
use crate::state::Daemon;
use crate::write_out::write_out;

/// A managed file.
pub(crate) struct Managed {
    /// Slot and generation.
    pub reference: FileRef,
    /// Index of its root.
    pub root: u32,
    /// The daemon's descriptor, for reading: enough for fdatasync, and harmless. Synced by whoever holds the
    /// file's lock.
    pub file: File,
    /// Another one, which destage syncs without the lock: Linux tells an error once to each open description,
    /// and of two syncs by the same one the second would succeed.
    pub destaged: File,
    /// Where it was when it was registered.
    pub path: PathBuf,
    pub dev: u64,
    pub ino: u64,
}

impl Managed {
    /// Where it is now; renames are followed by the kernel.
    pub fn current_path(&self) -> PathBuf {
        path_of(&self.file).unwrap_or_else(|_| self.path.clone())
    }

    /// True when no name is left.
    pub fn is_unlinked(&self) -> bool {
        rustix::fs::fstat(&self.file).is_ok_and(|stat| stat.st_nlink == 0)
    }
}

/// All managed files by slot.
#[derive(Default)]
pub(crate) struct FileTable {
    by_slot: Mutex<BTreeMap<u32, Arc<Managed>>>,
}

impl FileTable {
    pub fn insert(&self, file: Managed) -> Arc<Managed> {
        let file = Arc::new(file);
        lock(&self.by_slot).insert(file.reference.slot, Arc::clone(&file));
        file
    }

    pub fn get(&self, slot: u32) -> Option<Arc<Managed>> {
        lock(&self.by_slot).get(&slot).cloned()
    }

    pub fn remove(&self, slot: u32) -> Option<Arc<Managed>> {
        lock(&self.by_slot).remove(&slot)
    }

    pub fn count(&self) -> usize {
        lock(&self.by_slot).len()
    }

    pub fn all(&self) -> Vec<Arc<Managed>> {
        lock(&self.by_slot).values().cloned().collect()
    }
}

/// The table as the engine's background work wants it. Keeps the last descriptor it handed out alive.
pub(crate) struct Descriptors<'a> {
    table: &'a FileTable,
    last: Option<Arc<Managed>>,
    ages: Option<&'a mut Ages>,
    /// None is left out for its age.
    all: bool,
    /// What is written through them is announced in the block cache, as long as they live.
    daemon: Option<&'a Daemon>,
    announced: Vec<Announced<'a>>,
}

impl<'a> Descriptors<'a> {
    pub fn new(table: &'a FileTable) -> Self {
        Self { table, last: None, ages: None, all: true, daemon: None, announced: Vec::new() }
    }

    /// Announces in the block cache what is written.
    pub fn announced(self, daemon: &'a Daemon) -> Self {
        Self { daemon: Some(daemon), ..self }
    }

    /// Lets a destage round leave out the files that are not old enough.
    pub fn when_old(self, ages: &'a mut Ages) -> Self {
        Self { ages: Some(ages), all: false, ..self }
    }

    /// Notes that a destage round takes all because the log needs the room.
    pub fn when_pressed(self, ages: &'a mut Ages) -> Self {
        Self { ages: Some(ages), ..self }
    }
}

fn unknown() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the daemon has no descriptor of it")
}

impl Files for Descriptors<'_> {
    fn descriptor(&mut self, slot: u32) -> io::Result<BorrowedFd<'_>> {
        self.last = self.table.get(slot);
        self.last.as_ref().map(|managed| managed.destaged.as_fd()).ok_or_else(unknown)
    }

    fn write_out(&mut self, slot: u32, bytes: Range<u64>, piece: u64) -> io::Result<()> {
        write_out(self.descriptor(slot)?, bytes, piece)
    }

    fn is_calm(&mut self, slot: u32) -> bool {
        self.ages.as_ref().is_none_or(|ages| ages.is_calm(slot, Instant::now()))
    }

    fn is_due(&mut self, slot: u32, watermark: u64) -> bool {
        let Some(ages) = &mut self.ages else { return true };
        if self.all {
            ages.press(slot, Instant::now());
        }
        self.all || ages.is_due(slot, watermark, Instant::now())
    }
}

impl Writable for Descriptors<'_> {
    fn writable(&mut self, slot: u32) -> io::Result<File> {
        let managed = self.table.get(slot).ok_or_else(unknown)?;
        if let Some((daemon, zone)) = self.daemon.and_then(|daemon| Some((daemon, daemon.cache.as_ref()?))) {
            self.announced.push(Announced::new(zone, cache::me(daemon), managed.dev, managed.ino));
        }
        reopen(&managed.file, true)
    }
}

/// Another open file description of the same file.
pub(crate) fn reopen(fd: impl AsFd, write: bool) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new().read(true).write(write).custom_flags(flags.bits() as i32).open(path)
}

/// The path the kernel knows for a descriptor.
pub(crate) fn path_of(fd: impl AsFd) -> io::Result<PathBuf> {
    std::fs::read_link(Path::new("/proc/self/fd").join(fd.as_fd().as_raw_fd().to_string()))
}
