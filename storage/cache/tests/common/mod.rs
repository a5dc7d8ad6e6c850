//! A zone in a file in memory, as tests of one process use it.

use std::fs::File;
use std::sync::atomic::Ordering::SeqCst;

use seawall_cache::shared::{Cache, Identity, Layout};
use seawall_media::Region;

/// The boot in which zones are made.
pub const BOOT: [u8; 16] = [1; 16];

/// Room for a zone.
pub fn memory(layout: Layout) -> File {
    let file = tempfile::tempfile_in("/dev/shm").expect("a file");
    file.set_len(layout.total_bytes().expect("sane") as u64).expect("room");
    file
}

/// All of it, mapped.
pub fn region(memory: &File) -> Region {
    Region::map(memory, memory.metadata().expect("a length").len(), false).expect("a mapping")
}

/// A new zone.
pub fn create(memory: &File, layout: Layout, is_durable: bool) -> Cache {
    watched(Cache::create(region(memory), layout, [9; 16], BOOT, is_durable).expect("a cache"))
}

/// Nothing is served while nobody watches.
pub fn watched(cache: Cache) -> Cache {
    cache.watcher().store(1, SeqCst);
    cache
}

/// A file.
pub fn identity(inode: u64) -> Identity {
    Identity { fs: [7; 16], inode, generation: 1, size: 100, mtime_ns: 5, ctime_ns: 6 }
}
