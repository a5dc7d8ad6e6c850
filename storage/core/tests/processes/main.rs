//! What takes other processes: tests that start some, which no other test's files may meet.

#[allow(dead_code)] // The other program uses the rest.
#[path = "../core/common/mod.rs"]
mod common;
mod journal_pool;
mod unsynced;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A child has all our descriptors and mappings until its exec, and with them the locks of other tests' journals: what
/// was closed meanwhile seems to be in use.
static SPAWNS: RwLock<()> = RwLock::new(());

fn nobody_forks() -> RwLockReadGuard<'static, ()> {
    SPAWNS.read().unwrap_or_else(PoisonError::into_inner)
}

fn spawning() -> RwLockWriteGuard<'static, ()> {
    SPAWNS.write().unwrap_or_else(PoisonError::into_inner)
}
