//! Which way is cheaper under one file's present load: both are measured all the time, page faults included.
//!
//! Input: how long each publish took. Output: whether the next one may be a store. [`Warmth`](super::Warmth) decides
//! which chunks are worth a store; this module judges whether stores gain anything on this kernel and this file system.
//! The way that lost is tried again, ever more rarely: loads change.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// How many calls, and how many stores, make up a mean. It takes many stores, because those that fault come first, in a
/// bunch.
const CALLS: u32 = 256;
const STORES: u32 = 4096;
/// How many publishes do without stores after stores were more expensive; it doubles each time that they are again.
const PAUSE: u32 = 4 * STORES;
const PAUSE_MAX: u32 = 1 << 24;
/// A store that takes this many times the mean is not an ordinary one. One that merely waits for memory is.
const FAR: u64 = 3;
/// A publish that took longer was interrupted by something else: it counts as this many ticks.
const LONGEST: u64 = 1 << 17;
/// Roughly how many bytes take as long as the fixed cost of every call, however short: so that publishes of different
/// lengths can be compared.
const CALL_BYTES: u64 = 4096;

/// Used by one thread at a time: atomics only because it lies in a static.
pub struct Choice {
    call: Cost,
    store: Cost,
    /// Publishes until stores are tried again, and the number that this was last set to.
    pause: AtomicU32,
    paused: AtomicU32,
}

struct Cost {
    /// Since the last mean was taken.
    count: AtomicU32,
    ticks: AtomicU64,
    bytes: AtomicU64,
    /// Ticks for 64 KiB. 0: not known.
    mean: AtomicU64,
}

impl Choice {
    /// Decides for calls until there is a file.
    pub const fn new() -> Self {
        let (pause, paused) = (AtomicU32::new(0), AtomicU32::new(0));
        Self { call: Cost::new(), store: Cost::new(), pause, paused }
    }

    /// Starts anew with another file: nothing is known.
    pub fn restart(&self) {
        self.call.forget();
        self.store.forget();
        self.pause.store(0, Relaxed);
        self.paused.store(0, Relaxed);
    }

    /// True if stores are cheaper, or may be.
    #[inline]
    pub fn allows_store(&self) -> bool {
        self.pause.load(Relaxed) == 0 && self.call.mean.load(Relaxed) != 0
    }

    /// Notes what a call took.
    #[inline]
    pub fn called(&self, ticks: u64, bytes: u64) {
        self.call.note(ticks, bytes, CALLS);
        let pause = self.pause.load(Relaxed);
        if pause != 0 {
            self.pause.store(pause - 1, Relaxed);
        }
    }

    /// Notes what a store took. True if that is far more than others take, and a call would have been quicker: most
    /// likely the store met a page fault.
    #[inline]
    pub fn stored(&self, ticks: u64, bytes: u64) -> bool {
        if self.store.note(ticks, bytes, STORES) {
            self.judge();
        }
        let usual = self.call.of(bytes).max(FAR * self.store.of(bytes));
        ticks > usual
    }

    /// Notes the time spent on making later stores quick.
    pub fn prepared(&self, ticks: u64) {
        self.store.add(ticks, 0);
    }

    #[cold]
    fn judge(&self) {
        let [call, store] = [&self.call, &self.store].map(|cost| cost.mean.load(Relaxed));
        let paused = match store < call {
            true => 0,
            false => (2 * self.paused.load(Relaxed)).clamp(PAUSE, PAUSE_MAX),
        };
        self.paused.store(paused, Relaxed);
        self.pause.store(paused, Relaxed);
        if paused != 0 {
            self.store.forget();
        }
    }
}

impl Default for Choice {
    fn default() -> Self {
        Self::new()
    }
}

impl Cost {
    const fn new() -> Self {
        let [ticks, bytes, mean] = [const { AtomicU64::new(0) }; 3];
        Self { count: AtomicU32::new(0), ticks, bytes, mean }
    }

    fn forget(&self) {
        self.begin();
        self.mean.store(0, Relaxed);
    }

    fn begin(&self) {
        self.count.store(0, Relaxed);
        self.ticks.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
    }

    /// How long this many bytes take, in ticks. 0: not known.
    #[inline]
    fn of(&self, bytes: u64) -> u64 {
        (self.mean.load(Relaxed) * (bytes + CALL_BYTES)) >> 16
    }

    #[inline]
    fn add(&self, ticks: u64, bytes: u64) {
        self.ticks.store(self.ticks.load(Relaxed) + ticks.min(LONGEST), Relaxed);
        self.bytes.store(self.bytes.load(Relaxed) + bytes, Relaxed);
    }

    /// True if there is a new mean: of the latest `window`, and a little of the ones before.
    #[inline]
    fn note(&self, ticks: u64, bytes: u64, window: u32) -> bool {
        self.add(ticks, bytes + CALL_BYTES);
        let count = self.count.load(Relaxed) + 1;
        self.count.store(count, Relaxed);
        if count < window {
            return false;
        }
        let (ticks, bytes) = (self.ticks.load(Relaxed), self.bytes.load(Relaxed));
        let (new, old) = (((ticks << 16) / bytes).max(1), self.mean.load(Relaxed));
        self.mean.store(if old == 0 { new } else { (old + 3 * new) / 4 }, Relaxed);
        self.begin();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dearer_is_left_alone_ever_longer() {
        let choice = Choice::new();
        assert!(!choice.allows_store());
        (0..CALLS).for_each(|_| choice.called(3000, 4096));
        assert!(choice.allows_store());
        for pause in [PAUSE, 2 * PAUSE, 4 * PAUSE] {
            (0..STORES).for_each(|_| assert!(choice.stored(4000, 4096)));
            for _ in 0..pause {
                assert!(!choice.allows_store());
                choice.called(3000, 4096);
            }
            assert!(choice.allows_store());
        }
    }

    #[test]
    fn what_is_cheaper_stays_and_a_fault_is_seen() {
        let choice = Choice::new();
        (0..CALLS).for_each(|_| choice.called(3000, 4096));
        for n in 0..10 * STORES {
            let faults = n % 64 == 0;
            assert_eq!(choice.stored(if faults { 20_000 } else { 500 }, 4096), faults);
        }
        assert!(choice.allows_store());
    }

    #[test]
    fn a_store_that_waits_a_little_met_no_fault() {
        let choice = Choice::new();
        (0..CALLS).for_each(|_| choice.called(1000, 4096));
        (0..STORES).for_each(|_| assert!(!choice.stored(700, 4096)));
        assert!(!choice.stored(1500, 4096));
        assert!(choice.stored(4000, 4096));
    }

    #[test]
    fn what_prepares_stores_is_paid_by_them() {
        let choice = Choice::new();
        (0..CALLS).for_each(|_| choice.called(1000, 4096));
        for n in 0..STORES {
            if n % 16 == 0 {
                choice.prepared(10_000);
            }
            choice.stored(500, 4096);
        }
        assert!(!choice.allows_store());
    }
}
