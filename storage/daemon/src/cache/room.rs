//! Where the blocks of a cache lie: room that is taken for more places in each set, and given back.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use seawall_cache::set::WAYS;
use seawall_cache::shared::{Cache, Layout};
use seawall_media::Medium;

use super::error::{CacheError, failed};

/// Zeros that are written at once.
const PIECE: u64 = 4 << 20;
/// How long processes may take to fill the places that are taken away: a copy, most of the time.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long somebody may be reading what was there. What he reads then is not believed; but in a memory that is full to the
/// last page he could not even read it.
const GRACE: Duration = Duration::from_millis(100);

/// Where the blocks of a cache lie.
pub(super) struct Room<'a> {
    pub file: &'a File,
    pub path: &'a Path,
    pub medium: Medium,
    /// Bytes that it can have.
    pub most: u64,
}

impl Room<'_> {
    /// Gives sets so many places.
    pub fn resize(&self, cache: &Cache, ways: u32) -> Result<(), CacheError> {
        let layout = cache.layout();
        let before = cache.ways();
        if ways > before {
            // Somebody may be filling a place there, still, of a shrinking that gave up waiting for him.
            self.vacate(cache)?;
            self.take(layout.bytes_of(before), room_of(layout, ways, self.most))?;
        }
        cache.resize(ways);
        if ways < WAYS as u32 {
            // Also of a size that it has: the time before it may not have come to an end.
            self.vacate(cache)?;
            std::thread::sleep(GRACE);
            self.give_back(layout.bytes_of(ways));
        }
        Ok(())
    }

    fn vacate(&self, cache: &Cache) -> Result<(), CacheError> {
        let begin = Instant::now();
        while !cache.vacate() {
            if begin.elapsed() > PATIENCE {
                let error = io::Error::other("processes are still using it; try again");
                return Err(failed(self.path, "shrink")(error));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Takes room: a full file system must not become a SIGBUS in a database.
    pub fn take(&self, from: u64, to: u64) -> Result<(), CacheError> {
        if self.is_device() || from >= to {
            return Ok(());
        }
        fallocate(self.file, FallocateFlags::empty(), from, to - from).map_err(|e| match e {
            Errno::NOSPC => CacheError::NoRoom { path: self.path.into(), size: to },
            e => failed(self.path, "reserve space for")(e.into()),
        })?;
        if self.medium == Medium::Pmem {
            fill(self.file, from, to).map_err(failed(self.path, "fill"))?;
        }
        Ok(())
    }

    /// Gives room back. What cannot be given stays unused.
    fn give_back(&self, from: u64) {
        if from < self.most {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = fallocate(self.file, flags, from, self.most - from);
        }
    }

    fn is_device(&self) -> bool {
        self.file.metadata().is_ok_and(|stat| stat.file_type().is_block_device())
    }
}

/// Zeros: reserved room would be cleared, and its extents changed, inside some database's read.
fn fill(file: &File, from: u64, to: u64) -> io::Result<()> {
    let zeros = vec![0; PIECE as usize];
    for at in (from..to).step_by(PIECE as usize) {
        file.write_all_at(&zeros[..PIECE.min(to - at) as usize], at)?;
    }
    file.sync_all()
}

/// How many places a set has in a cache of this size that can have `most` bytes: a sixteenth each, rounded down. `None` for less
/// than one. The index comes on top: taken off, it would make of half of a size seven sixteenths.
pub(super) fn ways_of(size: u64, most: u64) -> Option<u32> {
    let ways = (size.min(most) * WAYS as u64).checked_div(most)?;
    u32::try_from(ways).ok().filter(|ways| *ways > 0)
}

/// The least bytes of a cache that can have `most`.
pub(super) fn least_of(most: u64) -> u64 {
    most.div_ceil(WAYS as u64)
}

/// Where a cache ends with so many places: with all of them what is left over belongs to it too.
pub(super) fn room_of(layout: Layout, ways: u32, most: u64) -> u64 {
    if ways == WAYS as u32 { most } else { layout.bytes_of(ways) }
}
