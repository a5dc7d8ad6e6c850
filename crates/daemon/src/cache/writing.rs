//! Blocks that were offered are brought to the cache's disk, one after the other, as long as the day's budget has room.

use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use seawall_cache::shared::Cache;
use seawall_media::locks::lock;

use super::aligned::Aligned;
use super::disk::Disk;
use super::{Zone, me};
use crate::state::Daemon;

/// How long it waits at most before it looks whether the daemon ends.
const WAIT_MS: u32 = 200;
const DAY: u64 = 24 * 60 * 60;

/// How many bytes may be brought to a disk: what flash is worn by. What is not used is saved up, for an hour at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    day: u64,
}

impl Budget {
    /// So many bytes in a day.
    pub fn per_day(day: u64) -> Self {
        Self { day }
    }

    /// Bytes in a day.
    pub fn day(self) -> u64 {
        self.day
    }

    /// What may be written now, of what could be at an earlier time (seconds; 0: never asked before).
    fn left(self, (left, at): (u64, u64), now: u64) -> u64 {
        let most = self.day / 24;
        if at == 0 {
            return most;
        }
        let earned = u128::from(now.saturating_sub(at)) * u128::from(self.day) / u128::from(DAY);
        left.saturating_add(u64::try_from(earned).unwrap_or(u64::MAX)).min(most)
    }
}

impl Disk {
    /// True if another block may be written now; who offers is told if not.
    fn may_write(&self, cache: &Cache) -> bool {
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
    pub(super) fn write(&self, daemon: &Daemon, cache: &Cache, at: u64, block: &[u8]) -> bool {
        let (left, since) = cache.allowance();
        cache.set_allowance(left.saturating_sub(block.len() as u64), since);
        self.store.write(at, block).inspect_err(|e| complain(daemon, e)).is_ok()
    }
}

fn complain(daemon: &Daemon, error: &io::Error) {
    daemon.log.say_once("cache's disk", format!("the block cache's disk refuses a write: {error}"));
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs().max(1))
}

/// Runs until the daemon ends.
pub(crate) fn run(daemon: &Arc<Daemon>) {
    let Some(zone) = &daemon.cache else { return };
    let Some(disk) = &zone.disk else { return };
    let mut memory = Aligned::new(zone.cache.layout().block_bytes as usize);
    while !daemon.lifetime.is_ending() {
        if bring_all(daemon, zone, disk, &mut memory) == 0 {
            disk.may_write(&zone.cache);
            zone.cache.wait_for_staged(WAIT_MS);
        }
    }
}

/// Brings what is ready; how many blocks that were.
fn bring_all(daemon: &Daemon, zone: &Zone, disk: &Disk, memory: &mut Aligned) -> usize {
    let (cache, owner) = (&zone.cache, me(&daemon.engine, daemon.slot));
    let (mut from, mut count) = (0, 0);
    while let Some((staged, behind)) = cache.next_staged(from) {
        let _complete = lock(&zone.bringing);
        if disk.may_write(cache) {
            cache.bring(owner, &staged, memory, |at, block| disk.write(daemon, cache, at, block));
        } else {
            cache.drop_staged(&staged);
        }
        (from, count) = (behind, count + 1);
    }
    count
}

/// For a block that this daemon brings by itself: true if it may.
pub(super) fn may_bring(zone: &Zone) -> bool {
    zone.disk.as_ref().is_none_or(|disk| disk.may_write(&zone.cache))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_earned_by_the_second_and_saved_up_for_an_hour() {
        let budget = Budget::per_day(DAY * 100);
        let hour = 3600 * 100;
        assert_eq!(budget.left((0, 0), 1000), hour, "at first an hour's");
        assert_eq!(budget.left((0, 1000), 1000), 0);
        assert_eq!(budget.left((50, 1000), 1003), 350);
        assert_eq!(budget.left((hour - 1, 1000), 1003), hour);
        assert_eq!(budget.left((7, 1000), 900), 7, "a clock that was set back earns nothing");
        assert_eq!(Budget::per_day(u64::MAX).left((5, 1), u64::MAX), u64::MAX / 24);
    }
}
