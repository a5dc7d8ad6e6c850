//! The daemon's threads as owners of the cache's operations.

use std::sync::atomic::Ordering::Acquire;

use seawall_cache::shared::OperationOwner;
use seawall_core::Engine;

/// This thread among the owners of operations; `slot` is the daemon's.
pub(crate) fn me(engine: &Engine, slot: u32) -> OperationOwner {
    let generation = engine.shm().client(slot).map_or(0, |client| client.generation().load(Acquire));
    OperationOwner::of_client(
        slot,
        generation,
        rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(),
    )
}
