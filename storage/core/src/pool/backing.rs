//! Memory for an image, of which a start needs little: the tables, the desk, a few segments. The other segments get
//! theirs while the log is in use.
//!
//! Why memory is taken before it is used: if there is no memory left for a page, a store into it is a SIGBUS, in a
//! database.
//! Invariants:
//!
//! * Everything before the first [unbacked](seawall_wire::desk::Desk::unbacked) segment has its memory, and so has the
//!   desk. A segment counts only once it has its memory: if taking it is cut short, it is taken once more, which
//!   changes nothing.
//! * Nobody reads or writes the segments behind it. They are free, and yet no room: to learn how large the log is, or
//!   how full, ask [`Pool::backed`](crate::pool::Pool::backed).
//! * A daemon that finds an image not all of which has memory, because the former daemon died, goes on from there.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::io::Errno;
use seawall_media::Region;

use super::error::PoolError;
use super::file;
use super::steps::map_error;

/// An image in the making.
pub(in crate::pool) struct Fresh<'a> {
    file: &'a File,
    at: &'a Path,
    bytes: u64,
    /// All of it, mapped.
    pub region: Region,
}

impl<'a> Fresh<'a> {
    /// An image of this many bytes, of zeros, none of which has memory yet.
    ///
    /// # Errors
    /// [`PoolError::NoRoom`]: there would not be enough memory for all of it.
    pub fn of(file: &'a File, at: &'a Path, bytes: u64) -> Result<Self, PoolError> {
        let no_room = |error: Errno| no_room(at, bytes, error);
        let memory = fstatvfs(file).map_err(no_room)?;
        // A file system without any limit reports that it has no blocks.
        if memory.f_blocks > 0 && memory.f_bavail.saturating_mul(memory.f_frsize) < bytes {
            return Err(no_room(Errno::NOSPC));
        }
        rustix::fs::ftruncate(file, bytes).map_err(no_room)?;
        let region = Region::map(file, bytes, false).map_err(|e| map_error(at, e))?;
        Ok(Self { file, at, bytes, region })
    }

    /// Takes memory for all of it.
    ///
    /// # Errors
    /// [`PoolError::NoRoom`].
    pub fn back_all(&self) -> Result<(), PoolError> {
        self.back(0, self.bytes as usize)?;
        // A leader copies what others wrote: in small pages each new page costs a fault.
        self.region.collapse(0, self.bytes as usize);
        Ok(())
    }

    /// Takes memory for a stretch of it.
    ///
    /// # Errors
    /// [`PoolError::NoRoom`].
    pub fn back(&self, from: usize, to: usize) -> Result<(), PoolError> {
        let taken = fallocate(self.file, FallocateFlags::empty(), from as u64, (to - from) as u64);
        taken.map_err(|error| no_room(self.at, self.bytes, error))
    }
}

fn no_room(at: &Path, bytes: u64, error: Errno) -> PoolError {
    PoolError::NoRoom { path: file::directory(at).into(), bytes, error: error.into() }
}
