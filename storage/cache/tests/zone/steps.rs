//! What tests do with a zone, a step at a time.

use std::fs::File;

use seawall_cache::shared::{Cache, CachedFile, Entered, Layout, Lookup, Offered, OperationOwner};

use crate::common::{self, identity, region, watched};

pub const LAYOUT: Layout = Layout { block_bytes: 4096, sets: 4, files: 2, operations: 8, staged: 0 };

pub fn owner() -> OperationOwner {
    OperationOwner::new(1, 1)
}

pub fn memory() -> File {
    common::memory(LAYOUT)
}

pub fn create(memory: &File, is_durable: bool) -> Cache {
    common::create(memory, LAYOUT, is_durable)
}

pub fn enter(cache: &Cache, inode: u64) -> Entered {
    cache.enter(&identity(inode)).expect("room for a file")
}

pub fn block(byte: u8) -> Vec<u8> {
    vec![byte; 4096]
}

/// What the cache has of a block.
pub fn look(cache: &Cache, file: CachedFile, number: u32) -> Option<u8> {
    let mut buffer = block(0);
    let hit = cache.look_up(file, number, &mut buffer) == Lookup::Hit;
    hit.then(|| {
        assert!(buffer.iter().all(|byte| *byte == buffer[0]));
        buffer[0]
    })
}

pub fn fill(cache: &Cache, file: CachedFile, number: u32, byte: u8) -> Offered {
    let Lookup::Miss(token) = cache.look_up(file, number, &mut block(0)) else { panic!("it is there") };
    token.map_or(Offered::Stale, |token| cache.offer(owner(), &token, &block(byte)))
}

pub fn write(cache: &Cache, file: CachedFile, number: u32) {
    let writing = cache.begin_write(owner(), file, number..number + 1);
    cache.end_write(writing);
}

/// Leaves the cache of `memory` as a process that ends leaves it, and finds it again.
pub fn again(memory: &File, boot: [u8; 16]) -> Cache {
    let (cache, _) = Cache::recover(region(memory), boot).expect("the zone");
    watched(cache)
}
