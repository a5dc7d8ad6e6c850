//! The daemon's own descriptors of managed files.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::OFlags;
use seawall_core::file::captured::Captured;
use seawall_core::{Errno, FileRef, certain};
use seawall_media::locks::lock;

use crate::sys;

/// A managed file.
pub(crate) struct Managed {
    /// Slot and generation.
    pub reference: FileRef,
    /// Index of its root.
    pub root: u32,
    /// Its records are changes of names in it.
    pub is_directory: bool,
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

/// fdatasync by the daemon's own descriptor, for whoever holds the file's lock, here or in a client.
pub(crate) fn real_sync(file: &Managed) -> Result<(), Errno> {
    if file.is_directory {
        // With what its log has of files as a whole.
        return Ok(rustix::fs::syncfs(&file.file)?).and_then(|()| certain::check(file.file.as_fd()));
    }
    certain::fdatasync(file.file.as_fd())
}

/// Syncs a directory, and before it these files, which its log has as a whole.
pub(crate) fn sync_directory(directory: &Managed, files: &[Captured]) -> io::Result<()> {
    for captured in files {
        match sys::open_by_handle(directory.destaged.as_fd(), captured.handle.kind(), captured.handle.bytes())
        {
            Ok(file) => File::from(file).sync_all()?,
            // Its last name is gone.
            Err(Errno::STALE) => {}
            // Only root may open a file so.
            Err(_) => return Ok(rustix::fs::syncfs(&directory.destaged)?),
        }
    }
    Ok(rustix::fs::fsync(&directory.destaged)?)
}

/// The number of an error; EIO for one without.
pub(crate) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
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
