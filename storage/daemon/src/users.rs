//! The processes that use the log.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

use crate::state::Daemon;
use crate::{foreign, watchdog};

/// Processes that use the log, or could: clients, those that just said Hello, and those that have the pool
/// mapped (children of clients that did not write yet).
pub(crate) fn users(daemon: &Daemon) -> Vec<u32> {
    let mut all = known(daemon);
    if let Ok(pool) = daemon.pool.file.metadata() {
        all.extend(foreign::mappers(pool.dev(), pool.ino()));
    }
    not_watchdogs(all)
}

/// True if nobody uses the log.
pub(crate) fn is_deserted(daemon: &Daemon) -> bool {
    // Whoever is known saves a look at every process's mappings.
    not_watchdogs(known(daemon)).is_empty() && users(daemon).is_empty()
}

fn known(daemon: &Daemon) -> BTreeSet<u32> {
    daemon.clients().into_iter().chain(daemon.lifetime.greeted()).collect()
}

/// Without that of a daemon that died in a stand-still: it is being ended as well.
fn not_watchdogs(pids: BTreeSet<u32>) -> Vec<u32> {
    pids.into_iter().filter(|pid| !watchdog::is_one(*pid)).collect()
}
