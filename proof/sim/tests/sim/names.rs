//! A short campaign on directories whose names are in the log: small files are made, synced, renamed, linked and removed by
//! several processes, which are killed at any step, and the power is cut at every point, also within recoveries.

use crate::common::campaign;
use seawall_sim::{Counts, Plan, run};

fn has_all(total: &Counts) {
    assert!(total.points > 1500 && total.replayed > 0 && total.cuts > 0 && total.kills > 0, "{total:?}");
    assert!(total.named > 0 && total.captured > 0 && total.absorbed > 0 && total.made_again > 0, "{total:?}");
}

// Holds: internals/FAILURE_MODEL#the-simulator, internals/SEMANTICS#names-in-the-log
#[test]
fn no_crash_point_takes_from_a_directory_what_was_synced() {
    let total = campaign(1, 60_000, Plan::with_names, |c| c.takeovers);
    has_all(&total);
    assert!(total.unborn > 0, "{total:?}");
    assert!(total.points_in_recovery > 0 && total.recoveries_cut > 0 && total.takeovers > 0, "{total:?}");
}

// Holds: internals/FAILURE_MODEL#the-simulator, internals/SEMANTICS#names-in-the-log
#[test]
fn no_crash_point_takes_from_a_directory_what_was_synced_to_a_block_device() {
    let total = campaign(1, 5_000, Plan::with_names_on_block, |c| c.made_again);
    has_all(&total);
    assert!(total.device_writes > 0, "{total:?}");
}

#[test]
fn a_seed_of_names_repeats_itself() {
    let once = run(&Plan::with_names(7));
    let again = run(&Plan::with_names(7));
    assert_eq!(format!("{:?}", once.counts), format!("{:?}", again.counts));
}
