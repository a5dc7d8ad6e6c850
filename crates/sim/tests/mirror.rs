//! A short campaign on a log on two devices: cuts that leave the copies different, one of them dying at any write, gone or
//! stale when the power is back.

use std::time::{Duration, Instant};

use seawall_sim::{Counts, Plan, run};

const POINTS: u64 = 10_000;
const AT_MOST: Duration = Duration::from_secs(40);

#[test]
fn no_crash_point_breaks_a_promise_on_two_devices() {
    let mut total = Counts::default();
    let begin = Instant::now();
    for seed in 1.. {
        // A slow machine may not have come to a device that fails.
        let is_enough = total.points >= POINTS || begin.elapsed() > AT_MOST;
        if is_enough && total.device_failures > 0 {
            break;
        }
        let outcome = run(&Plan::mirrored(seed));
        assert_eq!(outcome.violation, None, "seed {seed}");
        total.add(&outcome.counts);
    }
    assert!(total.replayed > 0 && total.kills > 0 && total.cuts > 0, "{total:?}");
    assert!(total.device_writes > 0 && total.absorbed > 0, "{total:?}");
}
