//! Blocks of a cache that lie on a disk, read past the page cache by a descriptor that the daemon sends when a file is
//! entered.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::io::pread;
use seawall_cache::shared::{Cache, FromDisk};
use seawall_media::Region;

/// What `O_DIRECT` wants memory aligned to, at most.
const ALIGNMENT: usize = 4096;

/// The cache's disk. A front has one pool, and that has one cache.
static DISK: OnceLock<OwnedFd> = OnceLock::new();

thread_local! {
    /// Memory to read into, with what aligning it takes.
    static ROOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// From now on blocks are read by this descriptor, if there was none yet.
pub fn know(disk: OwnedFd) {
    let _ = DISK.set(disk);
}

/// Reads a block.
pub fn read(at: u64, into: &mut [u8]) -> FromDisk {
    let Some(disk) = DISK.get() else { return FromDisk::NotNow };
    ROOM.with_borrow_mut(|room| {
        room.resize(into.len() + ALIGNMENT, 0);
        let skip = room.as_ptr().align_offset(ALIGNMENT);
        let Some(room) = room.get_mut(skip..skip + into.len()) else { return FromDisk::NotNow };
        loop {
            if let Some(done) = FromDisk::of(pread(disk, &mut *room, at), into.len()) {
                into.copy_from_slice(room);
                return done;
            }
        }
    })
}

/// Joins the zone behind `fd`, before anybody can know that this process has joined the log: from then on its writes are
/// believed to be announced.
///
/// # Errors
/// If it cannot be mapped, or is of another version.
pub fn join(fd: BorrowedFd<'_>, len: u64) -> io::Result<Cache> {
    let refused = |why: &dyn fmt::Debug| io::Error::other(format!("cannot use its block cache: {why:?}"));
    let region = Region::map(fd, len, false).map_err(|e| refused(&e))?;
    Cache::join(region).map(|cache| cache.reading(read)).map_err(|e| refused(&e))
}
