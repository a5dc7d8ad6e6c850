//! A short campaign on a pool with a spill area behind it: cuts inside copies, slots that are used again, disks that fail.

use std::time::{Duration, Instant};

use seawall_sim::{Counts, Plan, run};

/// Enough to reach every kind of event; well below a minute on a slow machine.
const POINTS: u64 = 20_000;
const AT_MOST: Duration = Duration::from_secs(40);

// Holds: internals/FAILURE_MODEL#the-simulator
#[test]
fn no_crash_point_breaks_a_promise_with_a_spill_area() {
    let mut total = Counts::default();
    let begin = Instant::now();
    // One that was killed some thousand times takes longer than all others: 41.
    for seed in 42.. {
        let has_all = total.points >= POINTS && total.area_failures > 0;
        if has_all || begin.elapsed() > AT_MOST {
            break;
        }
        let outcome = run(&Plan::spilling(seed));
        assert_eq!(outcome.violation, None);
        total.add(&outcome.counts);
    }
    assert!(total.points > 2000, "only {total:?}");
    assert!(total.spilled > 0 && total.area_failures > 0 && total.replayed > 0, "{total:?}");
    assert!(total.refused > 0 && total.kills > 0 && total.takeovers > 0 && total.cuts > 0, "{total:?}");
}
