//! Registered directories by number, as this daemon knows them.
//!
//! The pool's table has every directory that was ever registered, for recovery; the run-time memory has those whose files
//! are managed now.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::Mutex;

use seawall_core::pool::Pool;
use seawall_core::table::{self, RootEntry, TableError};
use seawall_media::identity;
use seawall_media::locks::lock;
use seawall_wire::shm::Shm;

/// Roots by number.
#[derive(Default)]
pub(crate) struct Roots(Mutex<BTreeMap<u32, RootEntry>>);

impl Roots {
    /// The roots of a pool.
    pub fn new(roots: Vec<(u32, RootEntry)>) -> Self {
        Self(Mutex::new(roots.into_iter().collect()))
    }

    pub fn get(&self, i: u32) -> Option<RootEntry> {
        lock(&self.0).get(&i).cloned()
    }

    pub fn all(&self) -> BTreeMap<u32, RootEntry> {
        lock(&self.0).clone()
    }

    pub fn insert(&self, i: u32, root: RootEntry) {
        lock(&self.0).insert(i, root);
    }

    /// Files below these are managed.
    pub fn in_use(&self, shm: &Shm) -> Vec<(u32, RootEntry)> {
        self.all().into_iter().filter(|(i, _)| is_in_use(shm, *i)).collect()
    }

    /// Frees the entries of directories that were removed, or replaced by others of their name: nothing can be
    /// registered below them any more. Those that a file's entry refers to stay. Returns how many it freed.
    pub fn forget_gone(&self, pool: &Pool, shm: &Shm) -> Result<usize, TableError> {
        let used: BTreeSet<u32> = table::files(pool)?.iter().map(|file| file.root).collect();
        let is_there = |root: &RootEntry| {
            File::open(&root.path).is_ok_and(|dir| identity(&dir).is_ok_and(|found| found == root.identity))
        };
        let mut entries = lock(&self.0);
        let gone = entries.iter().filter(|(i, root)| !used.contains(i) && !is_there(root));
        let gone: Vec<u32> = gone.map(|(i, _)| *i).collect();
        for i in &gone {
            withdraw(shm, *i);
            table::forget_root(pool, *i)?;
            entries.remove(i);
        }
        Ok(gone.len())
    }
}

/// True if files below this one are managed.
pub(crate) fn is_in_use(shm: &Shm, i: u32) -> bool {
    shm.root(i).is_some_and(|slot| slot.kind().is_some())
}

/// No file below this one is managed any more.
pub(crate) fn withdraw(shm: &Shm, i: u32) {
    if let Some(slot) = shm.root(i) {
        slot.withdraw();
    }
}
