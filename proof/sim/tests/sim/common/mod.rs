//! A short campaign: the whole ones are `make soak`.

use std::time::{Duration, Instant};

use seawall_sim::{Counts, Plan, run};

/// Enough to reach every kind of event; well below a minute on a slow machine.
const AT_MOST: Duration = Duration::from_secs(40);
/// What is to be met may take longer, most of all on a machine that has other things to do.
const LONGEST: Duration = Duration::from_secs(900);

/// Runs seeds from this one on until so many crash points are gone through, or some time is over, and all was met that is to be.
///
/// # Panics
/// If a promise was broken, or something was not met.
pub fn campaign(first: u64, points: u64, plan: fn(u64) -> Plan, has_met_all: fn(&Counts) -> bool) {
    let mut total = Counts::default();
    let begin = Instant::now();
    for seed in first.. {
        let is_enough = total.points >= points || begin.elapsed() > AT_MOST;
        if is_enough && has_met_all(&total) || begin.elapsed() > LONGEST {
            break;
        }
        let outcome = run(&plan(seed));
        assert_eq!(outcome.violation, None);
        total.add(&outcome.counts);
    }
    assert!(has_met_all(&total), "something was not met: {total:?}");
}
