//! A short campaign on a pool in memory.

use crate::common::campaign;
use seawall_sim::{Plan, run};

// Holds: internals/FAILURE_MODEL#promises, internals/FAILURE_MODEL#the-simulator, L5, L7, L13, L17
#[test]
fn no_crash_point_breaks_a_promise() {
    // Barred: a sync outside the log failed under `atomic`.
    campaign(1, 20_000, Plan::of, |c| {
        let syncs = [c.barred, c.real, c.absorbed];
        let ends = [c.replayed, c.torn, c.refused, c.kills, c.cuts, c.takeovers];
        c.points > 2000 && !syncs.contains(&0) && !ends.contains(&0)
    });
}

#[test]
fn a_seed_repeats_itself() {
    let once = run(&Plan::of(7)).counts;
    assert_eq!(format!("{once:?}"), format!("{:?}", run(&Plan::of(7)).counts));
}
