//! New files, without a name until they are complete.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode as FileMode, OFlags};
use seawall_media::durable;

use super::error::PoolError;
use super::steps::io;

/// A file without a name, on the file system of `path`.
pub(super) fn unnamed(path: &Path) -> Result<File, PoolError> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    rustix::fs::open(directory(path), flags, FileMode::RUSR | FileMode::WUSR)
        .map(File::from)
        .map_err(|e| io(path, "create")(e.into()))
}

/// Gives it the name, durably, unless the name was taken meanwhile.
pub(super) fn give_name(file: &File, path: &Path) -> Result<(), PoolError> {
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(|e| match e {
        rustix::io::Errno::EXIST => PoolError::Exists(path.into()),
        e => PoolError::Io { path: path.into(), doing: "create", error: e.into() },
    })?;
    durable::sync_name(path).map_err(io(path, "sync the directory of"))
}

/// The directory of a path.
pub(super) fn directory(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes zeros. Reserved room is not enough: the first store to each page would have to clear it, and on a DAX file
/// system also commit a change of the file's extents, inside some database's write.
pub(super) fn fill(file: &File, size: u64) -> std::io::Result<()> {
    const PIECE: u64 = 4 << 20;
    let zeros = vec![0; PIECE.min(size) as usize];
    let mut at = 0;
    while at < size {
        let piece = PIECE.min(size - at) as usize;
        file.write_all_at(&zeros[..piece], at)?;
        at += piece as u64;
    }
    Ok(())
}

/// A new pool's UUID.
pub(super) fn random_uuid(path: &Path) -> Result<[u8; 16], PoolError> {
    seawall_media::random_uuid().map_err(io(path, "generate a UUID for"))
}
