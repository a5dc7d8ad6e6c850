//! A stretch of the run-time memory whose meaning another crate knows.

use core::sync::atomic::{AtomicU32, AtomicU64};

use seawall_media::Region;

/// So many shared words, by their offset in bytes.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    region: &'a Region,
    at: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(region: &'a Region, at: usize) -> Self {
        Self { region, at }
    }

    /// The word of four bytes at `offset`.
    #[inline]
    pub fn u32(self, offset: usize) -> &'a AtomicU32 {
        self.region.u32(self.at + offset)
    }

    /// The word of eight bytes at `offset`.
    #[inline]
    pub fn u64(self, offset: usize) -> &'a AtomicU64 {
        self.region.u64(self.at + offset)
    }
}
