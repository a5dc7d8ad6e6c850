//! A short campaign.

use std::time::{Duration, Instant};

use seawall_sim::{Counts, Plan, run};

const AT_MOST: Duration = Duration::from_secs(40);

/// Runs seeds until so many crash points are gone through and, where the log is on a device, one has failed.
///
/// # Panics
/// If a promise was broken.
pub fn campaign(points: u64, plan: fn(u64) -> Plan) -> Counts {
    let mut total = Counts::default();
    let begin = Instant::now();
    for seed in 1.. {
        // A slow machine may not have come to a device that fails.
        let is_enough = total.points >= points || begin.elapsed() > AT_MOST;
        if is_enough && (total.device_failures > 0 || !plan(seed).block) {
            break;
        }
        let outcome = run(&plan(seed));
        assert_eq!(outcome.violation, None, "seed {seed}");
        total.add(&outcome.counts);
    }
    total
}
