//! The processes that use the log.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

use crate::state::Daemon;
use crate::{foreign, watchdog};

/// Processes that use the log, or could: clients, those that just said Hello, and those that have the pool
/// mapped (children of clients that did not write yet).
pub(crate) fn users(daemon: &Daemon) -> Vec<u32> {
    let mut all: BTreeSet<u32> = daemon.clients().into_iter().collect();
    all.extend(daemon.lifetime.greeted());
    if let Ok(pool) = daemon.pool.file.metadata() {
        all.extend(foreign::mappers(pool.dev(), pool.ino()));
    }
    // Of a daemon that died in a stand-still: it is being ended as well.
    all.into_iter().filter(|pid| !watchdog::is_one(*pid)).collect()
}

/// True if nobody uses the log.
pub(crate) fn is_deserted(daemon: &Daemon) -> bool {
    users(daemon).is_empty()
}
