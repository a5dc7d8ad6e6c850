//! Why there is no cache. `Display` says what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::bytes::Bytes;

/// Why there is no cache.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum CacheError {
    #[error("a block cache can have 64M to 16T, not {}: for example --cache 1G", Bytes(*.0))]
    Size(u64),
    #[error(
        "a block cache that can grow to {} needs at least {}, not {}, because its index has room for the \
         largest size from the start: give it more with --cache, or less with --cache-max",
        Bytes(*.most), Bytes(*.least), Bytes(*.size)
    )]
    Few { size: u64, most: u64, least: u64 },
    #[error(
        "the pool {0} is a log on a block device, and a block cache beside it would be as slow as its disk: \
         put the cache on a disk that is faster than the database's, with --cache-path (a file, or a device)"
    )]
    Block(PathBuf),
    #[error(
        "{path} would be on an ordinary file system: put the block cache on persistent memory (a DAX mount), in RAM \
         (/dev/shm), or on a disk that is faster than the database's, with --cache-path"
    )]
    NotMemory { path: PathBuf },
    #[error(
        "{path} is on a file system that cannot bypass the page cache (O_DIRECT): put the block cache on \
         ext4, XFS or a device, with --cache-path"
    )]
    NotDirect { path: PathBuf },
    #[error("the device {path} cannot be a block cache: {by}")]
    UsedDevice { path: PathBuf, by: &'static str },
    #[error(
        "the block cache {path} is in memory, which writes do not wear out: leave --cache-write-budget out"
    )]
    Budget { path: PathBuf },
    #[error(
        "{0} is not a block cache, and was left alone: remove it, or name another place with --cache-path"
    )]
    NotAZone(PathBuf),
    #[error(fmt = in_use)]
    InUse { path: PathBuf, pids: Vec<u32> },
    #[error("there is no room for {} at {path}: ask for less, or name another place with --cache-path", Bytes(*.size))]
    NoRoom { path: PathBuf, size: u64 },
    #[error("cannot {doing} the block cache {path}: {error}{}", hint(.error))]
    Io { path: PathBuf, doing: &'static str, error: io::Error },
}

fn in_use(path: &Path, pids: &[u32], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match pids {
        [] => write!(f, "the block cache {} is in use by another daemon", path.display()),
        pids => write!(f, "processes {pids:?} still use the block cache {}: stop them first", path.display()),
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => " (its directory must exist)",
        io::ErrorKind::IsADirectory => " (name a file in it, and Seawall makes the file)",
        _ => "",
    }
}

pub(super) fn failed(path: &Path, doing: &'static str) -> impl Fn(io::Error) -> CacheError {
    let path = path.to_owned();
    move |error| CacheError::Io { path: path.clone(), doing, error }
}
