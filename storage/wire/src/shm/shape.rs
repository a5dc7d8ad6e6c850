//! The counts that fix the layout, and the offsets that follow from them.

use seawall_stats::BLOCK_BYTES;

use super::{Client, Header, Hold, Lane, Root, Segment};

/// How many of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Lanes: how many threads may append at the same moment.
    pub lanes: u32,
    /// File slots, as many as the pool's file table has.
    pub files: u32,
    /// Segments of the pool.
    pub segments: u32,
    /// Processes at once.
    pub clients: u32,
    /// Registered directories.
    pub roots: u32,
    /// Sticky holds (mappings, streams, io_uring) at once, over all processes.
    pub holds: u32,
}

impl Shape {
    /// Bytes of a file's slot.
    pub const FILE_BYTES: usize = 192;
    /// Files that were synced and are in the log as a whole, at once.
    pub const CAPTURED: u32 = 4096;
    /// Bytes for one of them.
    pub const CAPTURED_BYTES: usize = 64;
    /// Directories that were made lately, at once.
    pub const MADE: u32 = 1024;
    /// Bytes for one of them.
    pub const MADE_BYTES: usize = 16;

    /// The shape used for a pool of `segments` segments and `files` file slots.
    pub const fn for_pool(segments: u32, files: u32, roots: u32) -> Self {
        Self { lanes: 64, files, segments, clients: 4096, roots, holds: 1024 }
    }

    /// Hash buckets: a power of two, at least twice the slots.
    pub const fn buckets(self) -> usize {
        (self.files as usize * 2).next_power_of_two()
    }

    pub(crate) const fn lanes_at(self) -> usize {
        Header::BYTES
    }

    pub(crate) const fn files_at(self) -> usize {
        self.lanes_at() + self.lanes as usize * Lane::BYTES
    }

    pub(crate) const fn hash_at(self) -> usize {
        self.files_at() + self.files as usize * Self::FILE_BYTES
    }

    pub(crate) const fn holds_at(self) -> usize {
        (self.hash_at() + self.buckets() * 4).next_multiple_of(64)
    }

    pub(crate) const fn captured_at(self) -> usize {
        (self.holds_at() + self.holds as usize * Hold::BYTES).next_multiple_of(64)
    }

    pub(crate) const fn made_at(self) -> usize {
        self.captured_at() + Self::CAPTURED as usize * Self::CAPTURED_BYTES
    }

    pub(crate) const fn clients_at(self) -> usize {
        self.made_at() + Self::MADE as usize * Self::MADE_BYTES
    }

    pub(crate) const fn roots_at(self) -> usize {
        self.clients_at() + self.clients as usize * Client::BYTES
    }

    pub(crate) const fn segments_at(self) -> usize {
        self.roots_at() + self.roots as usize * Root::BYTES
    }

    pub(crate) const fn stats_at(self) -> usize {
        (self.segments_at() + self.segments as usize * Segment::BYTES).next_multiple_of(64)
    }

    /// Bytes of the whole memory, or `None` for a shape no daemon makes.
    pub fn total_bytes(self) -> Option<usize> {
        let sane = self.lanes - 1 < 1 << 12
            && self.files < 1 << 20
            && self.segments < 1 << 22
            && self.clients < 1 << 16
            && self.roots < 1 << 10
            && self.holds < 1 << 20;
        sane.then(|| (self.stats_at() + (self.lanes as usize + 1) * BLOCK_BYTES).next_multiple_of(4096))
    }
}
