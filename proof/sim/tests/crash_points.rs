//! A short campaign: the whole one is `make soak`.

use std::time::{Duration, Instant};

use seawall_sim::{Counts, Plan, run};

/// Enough to reach every kind of event; well below a minute on a slow machine.
const POINTS: u64 = 20_000;
const AT_MOST: Duration = Duration::from_secs(40);

// Holds: internals/FAILURE_MODEL#promises, internals/FAILURE_MODEL#the-simulator, L5, L7, L13, L17
#[test]
fn no_crash_point_breaks_a_promise() {
    let mut total = Counts::default();
    let begin = Instant::now();
    for seed in 1.. {
        // The rarest event may take some more.
        let is_enough = total.points >= POINTS && total.barred > 0;
        if is_enough || begin.elapsed() > AT_MOST {
            break;
        }
        let outcome = run(&Plan::of(seed));
        assert_eq!(outcome.violation, None);
        total.add(&outcome.counts);
    }
    assert!(total.points > 2000, "only {total:?}");
    assert!(total.replayed > 0 && total.torn > 0 && total.refused > 0 && total.kills > 0, "{total:?}");
    assert!(total.cuts > 0 && total.takeovers > 0 && total.real > 0 && total.absorbed > 0, "{total:?}");
    assert!(total.barred > 0, "no sync outside the log failed under `atomic`: {total:?}");
}

#[test]
fn a_seed_repeats_itself() {
    let once = run(&Plan::of(7)).counts;
    assert_eq!(format!("{once:?}"), format!("{:?}", run(&Plan::of(7)).counts));
}
