//! A log on a block device: a file on a disk, or a device, with or without a second copy.

use std::path::{Path, PathBuf};

use seawall_core::pool::{self, PoolError, block};

use super::fit;

/// Size of a log that is made on demand, smaller than a pool in memory: three times as much lies there, and is read at a start.
pub(super) const DEFAULT_BLOCK_SIZE: u64 = 128 << 20;

/// Makes a log on a block device, and says what that takes.
///
/// # Errors
/// [`PoolError`].
pub fn make_block(at: &Path, size: Option<u64>, force: bool, mirror: Option<&Path>) -> Result<(), PoolError> {
    let memory = Path::new(pool::MEMORY);
    if let Some(mirror) = mirror.filter(|mirror| !block::is_device(mirror) && mirror.exists()) {
        // Before anything is made: it may be the copy that is left of a log.
        return Err(if block::is_journal(mirror)? {
            let why = "it is a log, or a copy of one: start it with --pool and its path".into();
            PoolError::Mirror { path: mirror.into(), why }
        } else {
            PoolError::Mirror { path: mirror.into(), why: "it already exists, and is not a log".into() }
        });
    }
    let size = size.unwrap_or_else(|| {
        if block::is_device(at) { DEFAULT_BLOCK_SIZE } else { fit::block(at, DEFAULT_BLOCK_SIZE) }
    });
    block::create(at, size, force, memory)?;
    let Some(mirror) = mirror else { return Ok(()) };
    block::join_mirror(at, mirror, force, memory).inspect_err(|_| {
        if !block::is_device(at) {
            // Nothing is in it yet; if it cannot be removed it is found, and says what it is.
            let _ = std::fs::remove_file(at);
        }
    })
}

/// A log that is there must be mirrored where the user named its mirror.
pub(super) fn check_mirror(at: &Path, mirror: &Path) -> Result<(), PoolError> {
    let there = block::mirror_of(at)?;
    let why = match &there {
        Some(there) if real(there) == real(mirror) => return Ok(()),
        Some(there) => format!("it is mirrored on {}, not on {}", there.display(), mirror.display()),
        None => "it has none: stop all processes that use it, then `seawall mirror` makes one".into(),
    };
    Err(PoolError::Mirror { path: at.into(), why })
}

/// A path without links, if it leads anywhere.
pub(super) fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.into())
}
