//! A short campaign: the whole ones are `make soak`.

use std::time::{Duration, Instant};

use seawall_sim::{Counts, Plan, run};

/// Enough to reach every kind of event; well below a minute on a slow machine.
const AT_MOST: Duration = Duration::from_secs(40);
/// The rarest event may take some more.
const LONGEST: Duration = Duration::from_secs(120);

/// Runs seeds from this one on until so many crash points are gone through, and the rarest event was met.
///
/// # Panics
/// If a promise was broken, or that event was not met.
pub fn campaign(first: u64, points: u64, plan: fn(u64) -> Plan, rarest: fn(&Counts) -> u64) -> Counts {
    let mut total = Counts::default();
    let begin = Instant::now();
    for seed in first.. {
        let is_enough = total.points >= points || begin.elapsed() > AT_MOST;
        if is_enough && rarest(&total) > 0 || begin.elapsed() > LONGEST {
            break;
        }
        let outcome = run(&plan(seed));
        assert_eq!(outcome.violation, None);
        total.add(&outcome.counts);
    }
    assert!(rarest(&total) > 0, "the rarest event was not met: {total:?}");
    total
}
