//! A short campaign on directories whose names are in the log: small files are made, synced, renamed, linked and removed by
//! several processes, which are killed at any step, and the power is cut at every point, also within recoveries.

use crate::common::campaign;
use seawall_sim::{Counts, Plan, run};

fn has_met_all(c: &Counts) -> bool {
    let records = [c.named, c.captured, c.absorbed, c.made_again];
    c.points > 1500 && ![c.replayed, c.cuts, c.kills].contains(&0) && !records.contains(&0)
}

// Holds: internals/FAILURE_MODEL#the-simulator, internals/SEMANTICS#names-in-the-log
#[test]
fn no_crash_point_takes_from_a_directory_what_was_synced() {
    campaign(1, 60_000, Plan::with_names, |c| {
        has_met_all(c) && ![c.unborn, c.takeovers, c.points_in_recovery, c.recoveries_cut].contains(&0)
    });
}

// Holds: internals/FAILURE_MODEL#the-simulator, internals/SEMANTICS#names-in-the-log
#[test]
fn no_crash_point_takes_from_a_directory_what_was_synced_to_a_block_device() {
    campaign(1, 5_000, Plan::with_names_on_block, |c| has_met_all(c) && c.device_writes > 0);
}

#[test]
fn a_seed_of_names_repeats_itself() {
    let once = run(&Plan::with_names(7));
    let again = run(&Plan::with_names(7));
    assert_eq!(format!("{:?}", once.counts), format!("{:?}", again.counts));
}
