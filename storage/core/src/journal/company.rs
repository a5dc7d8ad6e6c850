//! Company: whether a thread that could lead waits for others first.
//!
//! Threads that a device write has served come back with their next commit a moment later. If a thread that was not
//! served leads at once, it goes alone, and all of them have to wait for its write: two writes take turns, a full one
//! and an almost empty one. So until as many threads wait as the last capture served, a newcomer sleeps instead of
//! leading, and the last one to arrive leads. The wait lasts at most as long as the last write took, counted from its
//! end, and never more than 2 ms: a commit that comes later waits for nobody, and neither does a single thread, which
//! was all of the last capture.
//!
//! That is a gain as long as the device takes longer than the processors take for the commits of all of them. Where it
//! does not, nobody waits: `pace`.
//!
//! This comes before a capture begins, so it decides when, never what: nothing relies on it. The figures may be out of
//! date.

use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

use seawall_media::sim;
use seawall_stats::{Clock, ticks};
use seawall_wire::desk::Desk;

use super::pace;

/// A shorter wait is not worth falling asleep.
const LEAST_NS: u64 = 10_000;
/// A thread that has not come back by then is busy with something else.
const MOST_NS: u64 = 2_000_000;

/// Call this for every thread that begins to wait. True for the first since the newest capture began.
pub(super) fn join(desk: Desk<'_>) -> bool {
    desk.waits().fetch_add(1, Relaxed) <= desk.counted().load(Relaxed)
}

/// Call this when a capture begins.
pub(super) fn count(desk: Desk<'_>) {
    let waits = desk.waits().load(Relaxed);
    desk.company().store(waits.saturating_sub(desk.counted().load(Relaxed)), Relaxed);
    desk.counted().store(waits, Relaxed);
    if sim::process().is_none() {
        pace::count(desk, waits, ticks());
    }
}

/// Call this for a device write: from when to when it was under way, in ticks.
pub(super) fn wrote(desk: Desk<'_>, during: Range<u64>) {
    desk.took().store(during.end.saturating_sub(during.start), Relaxed);
    desk.ended().store(during.end, Relaxed);
}

/// How many more nanoseconds it is worth waiting for others; `None`: not at all.
pub(super) fn patience(desk: Desk<'_>, clock: Clock) -> Option<u64> {
    // Simulated processes take no time.
    if sim::process().is_some() { None } else { patience_at(desk, clock, ticks()) }
}

fn patience_at(desk: Desk<'_>, clock: Clock, now: u64) -> Option<u64> {
    let here = desk.waits().load(Relaxed).saturating_sub(desk.counted().load(Relaxed));
    if pace::is_at_once(desk) || here >= desk.company().load(Relaxed) {
        return None;
    }
    let since = now.wrapping_sub(desk.ended().load(Relaxed));
    let left = clock.ns(desk.took().load(Relaxed)).min(MOST_NS).saturating_sub(clock.ns(since));
    (left >= LEAST_NS).then_some(left)
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::super::desk_memory::desk_memory;
    use super::*;

    /// A tick is a nanosecond.
    const CLOCK: Clock = Clock { ns_per_ticks32: 1 << 32 };

    #[test]
    fn who_comes_right_after_a_full_write_waits_for_those_it_served() {
        let region = desk_memory();
        let desk = Desk::new(&region, 0);
        desk.took().store(100_000, Relaxed);
        let patience = || patience_at(desk, CLOCK, 1000);
        assert!(join(desk) && !join(desk), "one is the first");
        count(desk);
        assert_eq!(desk.company().load(Relaxed), 2);
        assert!(join(desk), "the first of the next");
        assert_eq!(patience(), Some(99_000), "one of two");
        desk.at_once().store(1, Relaxed);
        assert_eq!(patience(), None, "it is not worth it for now");
        desk.at_once().store(0, Relaxed);
        assert!(!join(desk));
        assert_eq!(patience(), None, "all that there were");
        count(desk);
        count(desk);
        assert_eq!(patience(), None, "nobody was served");
    }

    #[test]
    fn nobody_waits_long_after_a_write_and_nobody_who_is_alone() {
        let region = desk_memory();
        let desk = Desk::new(&region, 0);
        for _ in 0..16 {
            join(desk);
        }
        count(desk);
        join(desk);
        let patience = |took, now| {
            desk.took().store(took, Relaxed);
            patience_at(desk, CLOCK, now)
        };
        assert_eq!(patience(5_000, 0), None, "a write that took next to no time");
        assert_eq!(patience(100_000, 100_000), None, "that write is over for as long as it took");
        assert_eq!(patience(u64::MAX, 0), Some(MOST_NS));
        // Another CPU's counter may be a little behind.
        desk.ended().store(10, Relaxed);
        assert_eq!(patience(100_000, 5), None);
        count(desk);
        join(desk);
        assert_eq!(patience(100_000, 11), None, "alone, as before");
    }
}
