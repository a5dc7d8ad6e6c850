//! The pool file: making, opening, locking, checking it.
//!
//! Input: a path. Output: a mapped pool whose superblock was accepted, or an error that says what is wrong and what to
//! do. A pool that is open for writing is locked (flock(2)): one daemon at a time.

use std::fs::{File, OpenOptions};
use std::path::Path;

use seawall_media::{Medium, Region, probe};

use crate::format::{Layout, Superblock};
use crate::spill::Area;

use steps::{io, lock, map, map_error, opening};

mod area;
mod backing;
pub mod block;
mod create;
mod error;
mod file;
mod growth;
mod machine;
mod mappings;
mod opened;
pub mod replicated;
mod steps;

pub use create::{create, create_with_area};
pub use error::PoolError;
pub(crate) use error::{LimitText, is_limit};
pub use machine::{MEMORY, boot, host};
pub use mappings::maps_for_writing;
pub(crate) use mappings::{mapped_by_others, open_own};
pub use opened::Pool;

/// Opens a pool for writing and locks it.
///
/// # Errors
/// [`PoolError`].
pub fn open(path: &Path) -> Result<Pool, PoolError> {
    if block::is_journal(path)? {
        return block::open(path);
    }
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(opening(path))?;
    lock(&file, path)?;
    open_file(file, path, false)
}

/// Opens a pool read-only. It may be in use meanwhile.
///
/// # Errors
/// [`PoolError`].
pub fn open_read_only(path: &Path) -> Result<Pool, PoolError> {
    if block::is_journal(path)? {
        return block::open_read_only_in(path, Path::new(MEMORY));
    }
    open_file(File::open(path).map_err(opening(path))?, path, true)
}

fn open_file(file: File, path: &Path, read_only: bool) -> Result<Pool, PoolError> {
    let len = file.metadata().map_err(io(path, "read the size of"))?.len();
    if len < Layout::MIN_SIZE {
        return Err(PoolError::Size { path: path.into(), size: len });
    }
    let (medium, because, region) = if read_only {
        let region = Region::map_read_only(&file, len);
        (Medium::Emulated, String::new(), region.map_err(|e| map_error(path, e))?)
    } else {
        let probed = probe(&file).map_err(|error| PoolError::Probe { path: path.into(), error })?;
        (probed.medium, probed.because, map(&file, path, len, probed.medium)?)
    };
    let superblock =
        Superblock::read(&region).map_err(|error| PoolError::Superblock { path: path.into(), error })?;
    if !read_only && superblock.is_journaled() {
        return Err(PoolError::Image(path.into()));
    }
    if !read_only && superblock.host != host() {
        return Err(PoolError::OtherHost { path: path.into() });
    }
    if !read_only && medium == Medium::Emulated && !superblock.is_emulated() {
        return Err(PoolError::NotEmulated { path: path.into(), because });
    }
    if Area::is_damaged(&region, &superblock) {
        return Err(PoolError::SpillZone(path.into()));
    }
    let area = Area::of(&region, &superblock);
    let (region, path) = (region.into(), path.into());
    Ok(Pool { region, file, image: None, lock: None, mirror: None, area, path, superblock, medium, because })
}
