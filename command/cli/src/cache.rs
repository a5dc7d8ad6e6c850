//! Which block cache: none, or one of a size, beside the pool or at a place of its own.

use std::path::PathBuf;

use seawall_daemon::cache::CacheOptions;

use crate::size;

/// Bytes of a block if nobody says otherwise.
pub const DEFAULT_BLOCK: u32 = 8192;

/// What whoever needs a cache was told about it.
#[derive(Clone, clap::Args)]
pub struct WantedCache {
    /// Have a block cache of this size: reads of data files are answered from it. In memory, as the pool is
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    cache: Option<u64>,
    /// Bytes of its blocks: the database's pages. Reads of less than a block pass by. Without it 8K
    #[arg(long, value_name = "SIZE", value_parser = ["4K", "8K", "16K"], requires = "cache")]
    cache_block: Option<String>,
    /// Where the block cache lies; without it beside the pool. A place on an ordinary file system, or a device, makes it a
    /// cache on a disk, for one that is faster than the database's: it is read and written past the page cache
    #[arg(long, value_name = "PATH", requires = "cache")]
    cache_path: Option<PathBuf>,
    /// What the block cache can grow to, by `seawall cache resize`, while it is in use. Its index has room for so much
    #[arg(long, value_name = "SIZE", value_parser = size::parse, requires = "cache")]
    cache_max: Option<u64>,
    /// Bytes that may be written to a block cache on a disk in a day: flash is worn by writes. Without it any number
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
