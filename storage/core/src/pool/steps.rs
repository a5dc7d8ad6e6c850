//! Steps that may fail, with their errors.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::FlockOperation;
use seawall_media::{MapError, Medium, Region};

use super::error::PoolError;

pub(in crate::pool) fn lock(file: &File, path: &Path) -> Result<(), PoolError> {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|e| match e {
        rustix::io::Errno::WOULDBLOCK => PoolError::InUse(path.into()),
        e => PoolError::Io { path: path.into(), doing: "lock", error: e.into() },
    })
}

pub(in crate::pool) fn map(file: &File, path: &Path, len: u64, medium: Medium) -> Result<Region, PoolError> {
    Region::map(file, len, medium == Medium::Pmem).map_err(|e| map_error(path, e))
}

pub(in crate::pool) fn map_error(path: &Path, error: MapError) -> PoolError {
    PoolError::Map { path: path.into(), error }
}

pub(in crate::pool) fn opening(path: &Path) -> impl FnOnce(io::Error) -> PoolError {
    let path = path.to_owned();
    move |error| match error.kind() {
        io::ErrorKind::NotFound => PoolError::Missing(path),
        _ => PoolError::Io { path, doing: "open", error },
    }
}

pub(in crate::pool) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> PoolError {
    let path = path.to_owned();
    move |error| PoolError::Io { path, doing, error }
}
