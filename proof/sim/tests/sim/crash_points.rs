//! A short campaign on a pool in memory.

use crate::common::campaign;
use seawall_sim::{Plan, run};

// Holds: internals/FAILURE_MODEL#promises, internals/FAILURE_MODEL#the-simulator, L5, L7, L13, L17
#[test]
fn no_crash_point_breaks_a_promise() {
    // A sync outside the log that fails under `atomic`.
    let total = campaign(1, 20_000, Plan::of, |c| c.barred);
    assert!(total.points > 2000, "only {total:?}");
    assert!(total.replayed > 0 && total.torn > 0 && total.refused > 0 && total.kills > 0, "{total:?}");
    assert!(total.cuts > 0 && total.takeovers > 0 && total.real > 0 && total.absorbed > 0, "{total:?}");
}

#[test]
fn a_seed_repeats_itself() {
    let once = run(&Plan::of(7)).counts;
    assert_eq!(format!("{once:?}"), format!("{:?}", run(&Plan::of(7)).counts));
}
