//! The cache, as one process has it mapped: what every step works on.

use rustix::io::Errno;
use seawall_media::{Region, fence};

use super::format::Header;
use super::layout::Layout;

/// The cache, as one process has it mapped.
pub struct Cache {
    pub(super) region: Region,
    pub(super) layout: Layout,
    /// Stores survive power loss once flushed and fenced; on emulated memory there is nothing to wait for.
    pub(super) is_durable: bool,
    /// How blocks are read that lie on a disk.
    pub(super) read: Option<ReadAt>,
}

/// Reads a block from the cache's disk, at this offset, past the page cache.
pub type ReadAt = fn(at: u64, into: &mut [u8]) -> FromDisk;

/// What became of such a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromDisk {
    /// All of it is there.
    All,
    /// There was no way to the disk, which says nothing about it.
    NotNow,
    /// The disk refused.
    Failed,
}

impl FromDisk {
    /// What a pread(2) of `len` bytes came to. `None`: it was interrupted, and wants to be made again.
    pub fn of(read: Result<usize, Errno>, len: usize) -> Option<Self> {
        match read {
            Ok(read) if read == len => Some(FromDisk::All),
            Err(Errno::INTR) => None,
            Err(Errno::NOMEM | Errno::AGAIN | Errno::BADF) => Some(FromDisk::NotNow),
            // What is short is cut off: a device has all of it.
            _ => Some(FromDisk::Failed),
        }
    }
}

/// A file of the cache: its slot, and which of the slot's tenants is meant. Whoever kept one for too long gets nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CachedFile {
    /// The slot.
    pub slot: u32,
    /// Counts the slot's tenants.
    pub tenant: u16,
}

impl Cache {
    /// Which zone this is: never 0, and another one for each that is made.
    pub fn id(&self) -> u64 {
        self.region.u64(core::mem::offset_of!(Header, uuid)).load(core::sync::atomic::Ordering::Relaxed) | 1
    }

    /// The same, with a way to the disk that its blocks lie on. Without one nothing of such a cache is a hit.
    #[must_use]
    pub fn reading(self, read: ReadAt) -> Self {
        Self { read: Some(read), ..self }
    }

    /// True if its stores survive power loss.
    pub fn is_durable(&self) -> bool {
        self.is_durable
    }

    /// Where everything lies.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Starts the write-back of a range, on a medium that has use for it.
    #[inline]
    pub(super) fn flush(&self, at: usize, len: usize) {
        if self.is_durable {
            self.region.flush(at, len);
        }
    }

    /// Waits until what this thread flushed survives power loss, on a medium where anything does.
    #[inline]
    pub(super) fn settle(&self) {
        if self.is_durable {
            fence();
        }
    }
}
