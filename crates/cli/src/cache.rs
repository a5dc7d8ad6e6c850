//! Which block cache: none, or one of a size, beside the pool or at a place of its own.

use std::path::PathBuf;

use seawall_daemon::cache::CacheOptions;

use crate::size;

/// What whoever needs a cache was told about it.
#[derive(Clone, clap::Args)]
pub struct WantedCache {
    /// Have a block cache of this size: reads of data files are answered from it. In memory, as the pool is
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    cache: Option<u64>,
    /// Bytes of its blocks: the database's pages. Reads of less than a block pass by
    #[arg(long, value_name = "SIZE", default_value = "8K", value_parser = ["4K", "8K", "16K"], requires = "cache")]
    cache_block: String,
    /// Where the block cache lies; without it beside the pool
    #[arg(long, value_name = "PATH", requires = "cache")]
    cache_path: Option<PathBuf>,
}

impl WantedCache {
    /// The cache that was asked for.
    pub fn options(&self) -> Option<CacheOptions> {
        let path = self.cache_path.as_ref().and_then(|path| std::path::absolute(path).ok());
        let block_bytes = size::parse(&self.cache_block).unwrap_or_default() as u32;
        self.cache.map(|size| CacheOptions { size, block_bytes, path })
    }
}
