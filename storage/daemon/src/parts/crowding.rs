//! How it went when the table of files had no free entry.

use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed};
use std::time::Duration;

use crate::process;

/// After a look that found nothing, none is taken for this long: it asks the kernel about every file.
const PAUSE: Duration = Duration::from_millis(200);

/// What came of it, and until when it is not tried again.
#[derive(Default)]
pub(crate) struct Crowding {
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
}
