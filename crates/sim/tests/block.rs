//! A short campaign on a block device: crash at every device write, torn in every way; some of them fail.

use std::time::{Duration, Instant};

use seawall_sim::{Counts, Plan, run};

const POINTS: u64 = 20_000;
const AT_MOST: Duration = Duration::from_secs(40);

#[test]
fn no_crash_point_breaks_a_promise_on_a_block_device() {
    let mut total = Counts::default();
    let begin = Instant::now();
    for seed in 1.. {
        // A slow machine may not have come to a device that fails.
        let is_enough = total.points >= POINTS || begin.elapsed() > AT_MOST;
        if is_enough && total.device_failures > 0 {
            break;
        }
        let outcome = run(&Plan::on_block(seed));
        assert_eq!(outcome.violation, None);
        total.add(&outcome.counts);
    }
    assert!(total.points > 2000, "only {total:?}");
    assert!(total.replayed > 0 && total.kills > 0 && total.cuts > 0 && total.takeovers > 0, "{total:?}");
    assert!(total.device_writes > 0 && total.cleaned > 0 && total.absorbed > 0, "{total:?}");
}
