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
use serde::{Deserialize, Serialize};

/// How long the recovery of a database may take, and what that is estimated by. Kept for whoever watches the database:
/// the daemon does nothing with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryGoal {
    /// From the start of the server to its first transaction at most, milliseconds.
    pub goal_ms: u64,
    /// The part of it that the amount of redo does not change, milliseconds.
    pub fixed_ms: u64,
    /// Redo that the server replays in a second, bytes.
    pub replayed: u64,
}

/// Roots by number, and how long the recovery of their databases may take.
#[derive(Default)]
pub(crate) struct Roots(Mutex<BTreeMap<u32, RootEntry>>, Mutex<BTreeMap<u32, RecoveryGoal>>);

impl Roots {
    /// The roots of a pool.
    pub fn new(roots: Vec<(u32, RootEntry)>) -> Self {
        Self(Mutex::new(roots.into_iter().collect()), Mutex::default())
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

    /// The goal of whoever registered it last.
    pub fn set_goal(&self, i: u32, goal: Option<RecoveryGoal>) {
        let mut goals = lock(&self.1);
        match goal {
            Some(goal) => drop(goals.insert(i, goal)),
            None => drop(goals.remove(&i)),
        }
    }

    pub fn goal(&self, i: u32) -> Option<RecoveryGoal> {
        lock(&self.1).get(&i).copied()
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
            self.set_goal(*i, None);
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
