//! What a zone has whose blocks lie on a disk: its [store](super::store), and what may be written to it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use seawall_cache::shared::{Cache, StoreHeader};

use super::budget::Budget;
use super::store::Store;
use crate::log::Log;

/// What a zone has whose blocks lie on a disk.
pub(crate) struct Disk {
    store: Store,
    header: StoreHeader,
    index: PathBuf,
    /// What is kept with it lies beside this name.
    beside: PathBuf,
    budget: Option<Budget>,
}

impl Disk {
    /// The store with this header, whose index lies at that path.
    pub(super) fn new(
        store: Store,
        header: StoreHeader,
        index: PathBuf,
        beside: PathBuf,
        budget: Option<Budget>,
    ) -> Self {
        Self { store, header, index, beside, budget }
    }

    /// Where the blocks lie.
    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// What is kept with it lies beside this name.
    pub(super) fn beside(&self) -> &Path {
        &self.beside
    }

    /// What may be written in a day.
    pub(super) fn budget(&self) -> Option<Budget> {
        self.budget
    }

    /// Saves the index of a cache that was closed, and lets go of the one in memory.
    pub(super) fn save(&self, cache: &Cache) -> io::Result<()> {
        self.store.save(cache)?;
        self.store.set_header(&self.header.saved(true))?;
        std::fs::remove_file(&self.index)
    }

    /// True if another block may be written now. If not, the cache takes no offers until one may.
    pub(super) fn may_write(&self, cache: &Cache) -> bool {
        let Some(budget) = self.budget else { return true };
        let before = cache.allowance();
        let now = now();
        let left = budget.left(before, now);
        // What a moment earned is too little to be counted: so that it is not lost, the clock moves by what was.
        if left != before.0 || before.1 == 0 {
            cache.set_allowance(left, now);
        }
        let may = left >= u64::from(cache.layout().block_bytes);
        cache.set_spent(!may);
        may
    }

    /// Writes a block, whose memory is aligned, and counts it. False if the disk refuses.
    pub(super) fn write(&self, cache: &Cache, log: &Log, at: u64, block: &[u8]) -> bool {
        let (left, since) = cache.allowance();
        cache.set_allowance(left.saturating_sub(block.len() as u64), since);
        self.store.write(at, block).inspect_err(|e| complain(log, e)).is_ok()
    }
}

fn complain(log: &Log, error: &io::Error) {
    log.say_once("cache's disk", format!("cannot write to the block cache's disk: {error}"));
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs().max(1))
}
