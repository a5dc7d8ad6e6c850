//! The shared index and the store of blocks: one mapped zone, used by many processes at once, any of which may be
//! killed between any two instructions.
//!
//! ```text
//! header | samples | cells | operations | files | heads of sets | keys | tags | blocks
//! ```
//!
//! The blocks lie there, or [on a disk](store): then in their stead those that are on their way to it.
//!
//! | step | where | what it changes |
//! |---|---|---|
//! | look up | [`lookup`] | nothing but a heat; no lock, no system call |
//! | fill | [`fill`] | a place, published by one compare-and-swap of its set's word |
//! | bring a block to the disk | [`staged`] | a place, as a fill does; the daemon alone |
//! | write | [`mod@write`] | marks the sets of its blocks until it has ended |
//! | change (truncate, punch, rename over) | [`change`] | the file's incarnation |
//! | write a file that is not entered | [`unannounced`] | counts the writer in the file's cell until it has ended |
//! | count reads by file | [`count`] | the file's counts, once in 64 reads |
//! | sync | [`sync`] | what survives a power cut |
//! | reap | [`reap`] | what the dead left |
//! | keep, let compete, pass | [`policy`] | which places are kept; the daemon alone |
//! | enter, leave, forget | [`register`] | which files there are; the daemon alone |
//! | resize | [`resize`] | how many places a set has; the daemon alone |
//! | join | [`mod@join`] | nothing |
//! | create, recover, close | [`open`] | everything; alone |
//!
//! Invariants: an entry whose bit is set in its set's word, whose tag does not say *empty*, and whose key has its
//! file's incarnation, holds what a read of that block may return. Nobody waits for anybody. Not handled here: who
//! calls, how liveness is told, and the zone's memory.

mod change;
mod count;
mod fill;
mod format;
mod join;
mod layout;
mod lookup;
#[cfg(feature = "std")]
mod open;
mod operation;
mod policy;
mod reap;
#[cfg(feature = "std")]
mod register;
#[cfg(feature = "std")]
mod resize;
mod sample;
mod staged;
mod state;
#[cfg(feature = "std")]
mod store;
mod sync;
mod unannounced;
mod view;
mod word;
mod write;

use rustix::io::Errno;
use seawall_media::{Region, fence};

pub use change::Changing;
pub use count::{ONE_READ_IN, is_counted};
pub use fill::Offered;
pub use format::{FORMAT_VERSION, FileRecord, Header, Identity};
pub use join::OpenError;
pub use layout::Layout;
pub use lookup::{Lookup, Token};
#[cfg(feature = "std")]
pub use open::Recovered;
pub use operation::Owner;
#[cfg(feature = "std")]
pub use policy::{Arrangement, Holding};
pub use reap::Reaped;
#[cfg(feature = "std")]
pub use register::{Entered, Preparing, Tenant};
pub use sample::{ONE_IN, is_sampled};
pub use staged::Staged;
pub use state::{FAILURES_MAX, Off};
#[cfg(feature = "std")]
pub use store::StoreHeader;
pub use unannounced::{Cell, Version};
pub use write::Writing;

/// The cache, as one process has it mapped.
pub struct Cache {
    region: Region,
    layout: Layout,
    /// Stores survive power loss once flushed and fenced; on emulated memory there is nothing to wait for.
    is_durable: bool,
    /// How blocks are read that lie on a disk.
    read: Option<ReadAt>,
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

/// A file of the cache: its slot, and which of the slot's tenants is meant. Who kept one for too long gets nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileRef {
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
    fn flush(&self, at: usize, len: usize) {
        if self.is_durable {
            self.region.flush(at, len);
        }
    }

    /// Waits until what this thread flushed survives power loss, on a medium where anything does.
    #[inline]
    fn settle(&self) {
        if self.is_durable {
            fence();
        }
    }
}
