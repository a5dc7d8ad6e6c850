//! Which way is cheaper, for one file's present load: measured in windows, one way each.
//!
//! Input: what each publish took. Output: the way of the next one. Windows are as long as it takes to touch
//! every page several times: the first store to a page after its write-back faults, and that is the price to
//! be compared. A way that lost is tried again, ever more seldom: loads change.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

const CALL: usize = 0;
const STORE: usize = 1;

/// Publishes in a window, per page of the file. Of a trial only the second half counts.
const WINDOW: u32 = 8;
/// The same in a trial of the way that lost.
const TRIAL: u32 = 4;
/// Smallest file, in pages, that windows are made for.
const PAGES_MIN: u32 = 256;
/// Windows until a new trial, before the first; each trial doubles that, whichever way wins.
const PATIENCE: u32 = 8;
/// At most.
const PATIENCE_MAX: u32 = 256;
/// A publish that took longer was interrupted by something else: it counts as this many ticks.
const LONGEST: u64 = 1 << 20;

/// Used by one thread at a time: atomics only because it lies in a static.
pub struct Choice {
    way: AtomicUsize,
    pages: AtomicU32,
    /// Publishes left in this window.
    left: AtomicU32,
    /// Windows until the next trial, and how many there were when it was set.
    until_trial: AtomicU32,
    patience: AtomicU32,
    ticks: AtomicU64,
    bytes: AtomicU64,
    is_trial: AtomicBool,
    /// Cost of each way in its latest windows, ticks per 64 KiB. 0: not known.
    cost: [AtomicU64; 2],
}

impl Choice {
    /// Calls, until there is a file.
    pub const fn new() -> Self {
        Self {
            way: AtomicUsize::new(CALL),
            pages: AtomicU32::new(PAGES_MIN),
            left: AtomicU32::new(PAGES_MIN),
            until_trial: AtomicU32::new(PATIENCE),
            patience: AtomicU32::new(PATIENCE),
            is_trial: AtomicBool::new(false),
            ticks: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            cost: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }

    /// Another file of so many pages: nothing is known.
    pub fn restart(&self, pages: u32) {
        self.pages.store(pages.max(PAGES_MIN), Relaxed);
        self.until_trial.store(PATIENCE, Relaxed);
        self.patience.store(PATIENCE, Relaxed);
        self.cost.iter().for_each(|cost| cost.store(0, Relaxed));
        self.begin(CALL, WINDOW);
    }

    /// True if the next publish shall be a store.
    #[inline]
    pub fn is_store(&self) -> bool {
        self.way.load(Relaxed) == STORE
    }

    /// What a publish took.
    #[inline]
    pub fn note(&self, ticks: u64, bytes: usize) {
        let left = self.left.load(Relaxed) - 1;
        self.left.store(left, Relaxed);
        let warms_up = self.is_trial.load(Relaxed) && left >= self.pages.load(Relaxed) * TRIAL / 2;
        if !warms_up {
            self.ticks.store(self.ticks.load(Relaxed) + ticks.min(LONGEST), Relaxed);
            self.bytes.store(self.bytes.load(Relaxed) + bytes as u64, Relaxed);
        }
        if left == 0 {
            self.decide();
        }
    }

    #[cold]
    fn decide(&self) {
        let new = (self.ticks.load(Relaxed) << 16) / self.bytes.load(Relaxed).max(1);
        let cost = &self.cost[self.way.load(Relaxed)];
        let known = cost.load(Relaxed);
        // Windows in which the file is written back are much dearer than those between: one of either kind
        // says little.
        let is_first = known == 0 || self.is_trial.load(Relaxed);
        cost.store(if is_first { new.max(1) } else { (known * 7 + new) / 8 }, Relaxed);
        let [call, store] = [CALL, STORE].map(|way| self.cost[way].load(Relaxed));
        let cheaper = if store != 0 && store < call { STORE } else { CALL };
        let until_trial = self.until_trial.load(Relaxed);
        if store == 0 || until_trial == 0 {
            let patience = (2 * self.patience.load(Relaxed)).min(PATIENCE_MAX);
            self.patience.store(patience, Relaxed);
            self.until_trial.store(patience, Relaxed);
            self.begin(STORE - cheaper, TRIAL);
        } else {
            self.until_trial.store(until_trial - 1, Relaxed);
            self.begin(cheaper, WINDOW);
        }
    }

    fn begin(&self, way: usize, rounds: u32) {
        self.way.store(way, Relaxed);
        self.is_trial.store(rounds == TRIAL, Relaxed);
        self.left.store(self.pages.load(Relaxed) * rounds, Relaxed);
        self.ticks.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
    }
}
