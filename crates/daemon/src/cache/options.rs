//! How large a cache is to be, and where.

use std::path::{Path, PathBuf};

use crate::place::beside;

/// A cache that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// Bytes of its zone.
    pub size: u64,
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
        Self { size, block_bytes: 8192, write_budget: None, path: None, is_needed: true }
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
