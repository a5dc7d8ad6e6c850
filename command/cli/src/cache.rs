//! Which block cache: none, or one of a size, beside the pool or at a place of its own.

use std::path::PathBuf;

use seawall_daemon::cache::CacheOptions;

use crate::size;

/// Bytes of a block if nobody says otherwise.
pub const DEFAULT_BLOCK: u32 = 8192;

/// The cache options of a command that needs a cache.
#[derive(Clone, clap::Args)]
pub struct WantedCache {
    /// Use a block cache of this size, which answers reads of data files. It lies in memory, as the pool does
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    cache: Option<u64>,
    /// Size of its blocks: the database's page size. Reads of less than a block bypass it. Without it 8K
    #[arg(long, value_name = "SIZE", value_parser = ["4K", "8K", "16K"], requires = "cache")]
    cache_block: Option<String>,
    /// Where the block cache lies; without it beside the pool. A place on an ordinary file system, or a device, makes
    /// it a cache on a disk, for a disk that is faster than the database's: it is read and written past the page cache
    #[arg(long, value_name = "PATH", requires = "cache")]
    cache_path: Option<PathBuf>,
    /// How far `seawall cache resize` can grow the block cache while it is in use. Its index has room for this size
    #[arg(long, value_name = "SIZE", value_parser = size::parse, requires = "cache")]
    cache_max: Option<u64>,
    /// Bytes that may be written to a block cache on a disk in a day, since writes wear out flash. Without it there is
    /// no limit
    #[arg(long, value_name = "SIZE", value_parser = size::parse, requires = "cache")]
    cache_write_budget: Option<u64>,
}

impl WantedCache {
    /// The cache that was asked for.
    pub fn options(&self) -> Option<CacheOptions> {
        let block_bytes = self.block_bytes().unwrap_or(DEFAULT_BLOCK);
        let (path, write_budget, max) = (self.path(), self.cache_write_budget, self.cache_max);
        self.size().map(|size| CacheOptions {
            block_bytes,
            max,
            path,
            write_budget,
            ..CacheOptions::of_size(size)
        })
    }

    /// The size that was asked for, bytes.
    pub fn size(&self) -> Option<u64> {
        self.cache
    }

    /// The bytes of a block that were asked for.
    pub fn block_bytes(&self) -> Option<u32> {
        let text = self.cache_block.as_deref()?;
        size::parse(text).ok().and_then(|bytes| u32::try_from(bytes).ok())
    }

    /// What it can grow to.
    pub fn max(&self) -> Option<u64> {
        self.cache_max
    }

    /// The bytes that may be written in a day.
    pub fn write_budget(&self) -> Option<u64> {
        self.cache_write_budget
    }

    /// The place that was asked for.
    pub fn path(&self) -> Option<PathBuf> {
        self.cache_path.as_ref().and_then(|path| std::path::absolute(path).ok())
    }
}

/// The same as arguments of a daemon.
pub fn arguments(wanted: &CacheOptions) -> Vec<std::ffi::OsString> {
    let mut arguments = vec!["--cache".into(), wanted.size.to_string().into(), "--cache-block".into()];
    arguments.push(format!("{}K", wanted.block_bytes >> 10).into());
    if let Some(path) = &wanted.path {
        arguments.extend(["--cache-path".into(), path.into()]);
    }
    if let Some(max) = wanted.max {
        arguments.extend(["--cache-max".into(), max.to_string().into()]);
    }
    if let Some(budget) = wanted.write_budget {
        arguments.extend(["--cache-write-budget".into(), budget.to_string().into()]);
    }
    arguments
}
