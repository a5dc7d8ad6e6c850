//! How large a cache is to be, and where.

use std::path::{Path, PathBuf};

use seawall_cache::shared::Layout;

use super::error::CacheError;
use super::room::{least_of, ways_of};
use crate::place::beside;

/// A cache that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// Bytes of it.
    pub size: u64,
    /// Bytes that it can have later, when it is resized; without it no more than at first.
    pub max: Option<u64>,
    /// Bytes of a block: 4096, 8192 or 16384.
    pub block_bytes: u32,
    /// Bytes that may be written to its disk in a day, if it is on one: what flash is worn by. Without it any number.
    pub write_budget: Option<u64>,
    /// Where; without it [beside the pool](default_path).
    pub path: Option<PathBuf>,
    /// Without it the daemon does not start. Else it goes without, and says why: a database that is to come up whatever
    /// happens needs its log, and can do without a cache.
    pub is_needed: bool,
}

impl CacheOptions {
    /// A cache of this size, and nothing else that is special.
    pub fn of_size(size: u64) -> Self {
        Self { size, max: None, block_bytes: 8192, write_budget: None, path: None, is_needed: true }
    }

    /// Bytes that it can have.
    pub fn most(&self) -> u64 {
        self.max.map_or(self.size, |max| max.max(self.size))
    }

    /// How many places its sets have at first.
    pub(super) fn ways(&self) -> u32 {
        ways_of(self.size, self.most()).unwrap_or(1)
    }

    /// Whether a cache of this size, which can have `most` bytes, is as large as this one is at first.
    pub fn is_as_large(&self, size: u64, most: u64) -> bool {
        most == self.most() && ways_of(size, most) == Some(self.ways())
    }

    /// The layout, in which there is a place at least for what it has at first.
    pub(super) fn checked(&self, layout: Option<Layout>) -> Result<Layout, CacheError> {
        let layout = layout.ok_or(CacheError::Size(self.size))?;
        let (size, most, least) = (self.size, self.most(), least_of(self.most()));
        if size < least { Err(CacheError::Few { size, most, least }) } else { Ok(layout) }
    }

    /// Where the zone of this pool is.
    pub fn at(&self, pool: &Path) -> PathBuf {
        self.path.clone().unwrap_or_else(|| default_path(pool))
    }
}

/// Where a pool's cache is if nobody says otherwise.
pub fn default_path(pool: &Path) -> PathBuf {
    beside(pool, ".cache")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::room::room_of;

    #[test]
    fn it_begins_with_a_place_in_each_set_at_least() {
        let wanted = |size, max| CacheOptions { max, ..CacheOptions::of_size(size) };
        let ways = |wanted: CacheOptions| {
            wanted.checked(Layout::for_zone(wanted.most(), wanted.block_bytes))?;
            Ok::<_, CacheError>(wanted.ways())
        };
        assert_eq!(ways(wanted(64 << 20, None)).expect("a size"), 16);
        assert_eq!(ways(wanted(64 << 20, Some(256 << 20))).expect("a size"), 4);
        assert_eq!(ways(wanted(64 << 20, Some(1 << 20))).expect("a size"), 16);
        assert!(matches!(ways(wanted(64 << 20, Some(4 << 30))), Err(CacheError::Few { .. })));
        assert!(matches!(ways(wanted(1 << 20, None)), Err(CacheError::Size(_))));
    }
    #[test]
    fn every_size_is_sixteenths_and_known_again() {
        const MOST: u64 = 1 << 30;
        let step = MOST / 16;
        for layout in [Layout::for_zone(MOST, 8192), Layout::for_disk(MOST, 4096)] {
            let layout = layout.expect("a layout");
            for ways in 1..=16 {
                let at = |size| CacheOptions { max: Some(MOST), ..CacheOptions::of_size(size) };
                let (least, most) = (u64::from(ways) * step, (u64::from(ways) + 1) * step - 1);
                for size in [least, most.min(MOST)] {
                    assert_eq!(at(size).ways(), ways, "{size}");
                    let others = (1..=16).filter(|n| at(size).is_as_large(room_of(layout, *n, MOST), MOST));
                    assert_eq!(others.collect::<Vec<_>>(), [ways], "{size}");
                }
            }
        }
        assert!(!CacheOptions::of_size(MOST).is_as_large(MOST, 2 * MOST), "it can grow");
    }
}
