//! How it went when the table of files had no free entry.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed};
use std::time::{Duration, Instant};

use seawall_media::locks::lock;

use crate::process;

/// After a look that found nothing, none is taken for this long: it asks the kernel about every file.
const PAUSE: Duration = Duration::from_millis(200);

/// A directory that gave up its place comes back to a full table after this at the earliest: more of them in use than there are
/// places would take them from each other, and each entry costs more than the sync that it spares.
const AWAY: Duration = Duration::from_secs(60);
/// As many are remembered.
const MOST: usize = 4096;

/// What came of it, and until when it is not tried again.
#[derive(Default)]
pub(crate) struct Crowding {
    /// Directories that gave up their places, by device and inode, and when.
    gone: Mutex<HashMap<(u64, u64), Instant>>,
    evicted: AtomicU64,
    turned_away: AtomicU64,
    /// Nanoseconds since boot.
    until: AtomicU64,
}

impl Crowding {
    /// A file's entry was given to another one.
    pub fn count_evicted(&self) {
        self.evicted.fetch_add(1, Relaxed);
    }

    /// This directory has given up its place.
    pub fn note_gone(&self, inode: (u64, u64)) {
        let mut gone = lock(&self.gone);
        if gone.len() >= MOST {
            gone.clear();
        }
        gone.insert(inode, Instant::now());
    }

    /// True if it did so lately.
    pub fn is_gone(&self, inode: (u64, u64)) -> bool {
        lock(&self.gone).get(&inode).is_some_and(|at| at.elapsed() < AWAY)
    }

    /// A file found no place among files that are all in use.
    pub fn count_turned_away(&self) {
        self.turned_away.fetch_add(1, Relaxed);
    }

    /// Files whose entry was given to another one.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    /// Times that a file found no place.
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Relaxed)
    }

    /// Has `look` look for a place, unless it found none a moment ago.
    pub fn try_again(&self, look: impl FnOnce() -> bool) -> bool {
        let now = process::now_ns();
        if now < self.until.load(Acquire) {
            return false;
        }
        let found = look();
        if !found {
            self.until.store(now + PAUSE.as_nanos() as u64, Relaxed);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_found_nothing_is_not_taken_again_at_once() {
        let crowding = Crowding::default();
        assert!(
            crowding.try_again(|| true) && crowding.try_again(|| true),
            "a look that found a place may be taken again"
        );
        assert!(!crowding.try_again(|| false));
        assert!(!crowding.try_again(|| panic!("it asks the kernel about every file")));
        std::thread::sleep(PAUSE);
        assert!(crowding.try_again(|| true));
    }

    #[test]
    fn directories_that_give_way_for_ever_do_not_fill_the_memory() {
        let crowding = Crowding::default();
        for ino in 0..3 * MOST as u64 {
            assert!(!crowding.is_gone((1, ino)));
            crowding.note_gone((1, ino));
            assert!(crowding.is_gone((1, ino)));
            assert!(lock(&crowding.gone).len() <= MOST);
        }
    }
}
