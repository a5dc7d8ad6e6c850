//! The device or the file that a journal lies on.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use seawall_media::block::{ANCHOR_BYTES, ANCHOR_MAGIC};

use super::super::error::PoolError;
use super::super::steps::{io as failing, lock, opening};

/// True if this is a journal, and not a pool in memory. One anchor is enough.
///
/// # Errors
/// [`PoolError`] if it cannot be read.
pub fn is_journal(path: &Path) -> Result<bool, PoolError> {
    let mut copies = Vec::new();
    let file = File::open(path).map_err(opening(path))?;
    let read = file.take(2 * ANCHOR_BYTES as u64).read_to_end(&mut copies);
    read.map_err(failing(path, "read"))?;
    Ok(copies.chunks(ANCHOR_BYTES).any(|copy| copy.starts_with(&ANCHOR_MAGIC)))
}

/// Opens a journal, or a file or device that will become one, and locks it. A device is opened as its only user: nobody
/// mounts it meanwhile.
pub(super) fn open_locked(path: &Path) -> Result<File, PoolError> {
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(opening(path))?;
    // For a device, too, this lock comes first: it tells a daemon from a mount.
    lock(&file, path)?;
    if !is_device(path) {
        return Ok(file);
    }
    drop(file);
    let file = exclusively(path).map_err(|error| match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::BUSY.raw_os_error() => {
            PoolError::UsedDevice { path: path.into(), by: "it is mounted, or something else uses it" }
        }
        _ => PoolError::Io { path: path.into(), doing: "open", error },
    })?;
    lock(&file, path)?;
    Ok(file)
}

/// Opens it for durable writes: past the page cache, where the file system can do that. True if it can.
pub(super) fn device(path: &Path) -> io::Result<(OwnedFd, bool)> {
    match file_flags(path, OFlags::RDWR | OFlags::DIRECT) {
        Ok(file) => Ok((file, true)),
        Err(_) => file_flags(path, OFlags::RDWR).map(|file| (file, false)),
    }
}

pub(super) fn file_flags(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let write = flags.contains(OFlags::RDWR);
    let custom = (flags & OFlags::DIRECT).bits() as i32;
    OpenOptions::new().read(true).write(write).custom_flags(custom).open(path).map(OwnedFd::from)
}

/// True for a disk, a partition or the like; not for a file.
pub fn is_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_block_device())
}

/// Opens a device as its only user: a mount or a RAID that uses it is not disturbed.
pub(super) fn exclusively(path: &Path) -> io::Result<File> {
    let flags = OFlags::EXCL.bits() as i32;
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
}
