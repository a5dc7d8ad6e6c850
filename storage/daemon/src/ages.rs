//! How long records wait for their destage: as long as the kernel lets a changed page wait.
//!
//! What the kernel writes back anyway costs nothing more to sync, and a page that is changed again meanwhile is
//! written once instead of each time. Sooner would only take the disk's time from the database.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Longest wait, and the kernel's own default. An administrator may have set a longer one (`vm.dirty_expire_centisecs`)
/// to spare a disk; here it would make replay after a power cut longer.
const LONGEST: Duration = Duration::from_secs(30);

/// What a directory holds back is small, and whoever changes it without Seawall should not meet old records. A little less than
/// the pause between two rounds.
const OF_DIRECTORIES: Duration = Duration::from_millis(4500);

/// Longer than a busy log takes from one half to the next.
const CALM: Duration = Duration::from_secs(10);

/// Since when files have had the oldest of their records.
pub(crate) struct Ages {
    limit: Duration,
    /// For each slot its watermark when it was found to have newer records, and the time.
    since: HashMap<u32, (u64, Instant)>,
    /// For each slot when it was last synced because the log needed the room.
    pressed: HashMap<u32, Instant>,
}

impl Ages {
    /// With the kernel's own limit, or a shorter one.
    pub fn of_this_machine() -> Self {
        let text = std::fs::read_to_string("/proc/sys/vm/dirty_expire_centisecs").unwrap_or_default();
        let kernel =
            text.trim().parse().map_or(LONGEST, |centiseconds: u64| Duration::from_millis(centiseconds * 10));
        Self::new(kernel.min(LONGEST))
    }

    fn new(limit: Duration) -> Self {
        Self { limit, since: HashMap::new(), pressed: HashMap::new() }
    }

    /// True if the file in `slot`, of which everything up to `watermark` is on disk, has had newer records for long.
    pub fn is_due(&mut self, slot: u32, is_directory: bool, watermark: u64, now: Instant) -> bool {
        let found = self.since.entry(slot).or_insert((watermark, now));
        if found.0 != watermark {
            *found = (watermark, now);
        }
        let limit = if is_directory { self.limit.min(OF_DIRECTORIES) } else { self.limit };
        now.saturating_duration_since(found.1) >= limit
    }

    /// The file in `slot` is synced, however old its records are: the log needs the room.
    pub fn press(&mut self, slot: u32, now: Instant) {
        self.pressed.insert(slot, now);
    }

    /// True if it was not for some time.
    pub fn is_calm(&self, slot: u32, now: Instant) -> bool {
        self.pressed.get(&slot).is_none_or(|at| now.saturating_duration_since(*at) >= CALM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_calm_when_the_log_has_not_needed_its_room_for_some_time() {
        let (mut ages, start) = (Ages::new(Duration::from_secs(30)), Instant::now());
        assert!(ages.is_calm(1, start));
        ages.press(1, start);
        assert!(!ages.is_calm(1, start + CALM / 2) && ages.is_calm(2, start));
        ages.press(1, start + CALM / 2);
        assert!(!ages.is_calm(1, start + CALM) && ages.is_calm(1, start + 2 * CALM));
    }

    #[test]
    fn a_file_waits_from_its_oldest_record_and_again_after_each_sync() {
        let (mut ages, start) = (Ages::new(Duration::from_secs(30)), Instant::now());
        let at = |s| start + Duration::from_secs(s);
        assert!(!ages.is_due(1, false, 0, at(0)));
        assert!(!ages.is_due(1, false, 0, at(29)));
        assert!(!ages.is_due(2, false, 7, at(29)));
        assert!(ages.is_due(1, false, 0, at(30)));
        assert!(ages.is_due(1, false, 0, at(35)), "a sync that failed is tried again");
        assert!(!ages.is_due(1, false, 100, at(35)), "synced, by whomever");
        assert!(!ages.is_due(1, false, 100, at(64)));
        assert!(ages.is_due(1, false, 100, at(65)));
        assert!(ages.is_due(2, false, 7, at(65)));
        assert!(!ages.is_due(3, true, 0, at(65)), "nor a directory, just because there is a round");
        assert!(!ages.is_due(3, true, 0, at(69)) && ages.is_due(3, true, 0, at(70)));
    }
}
