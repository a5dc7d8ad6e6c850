//! A short campaign on guests whose disks are in the log: what `seawall disk` carries out, its process killed at any step, and the
//! power cut at every point.

use crate::common::campaign;
use seawall_sim::{Counts, Plan};

fn has_all(total: &Counts) {
    assert!(total.points > 1500 && total.replayed > 0 && total.cuts > 0 && total.kills > 0, "{total:?}");
    assert!(total.flushes > 0 && total.compared > 0 && total.again > 0, "{total:?}");
}

// Holds: internals/FAILURE_MODEL#the-simulator
#[test]
fn no_crash_point_takes_from_a_guest_what_it_flushed() {
    let total = campaign(1, 12_000, Plan::with_guests, |c| c.again);
    has_all(&total);
}

// Holds: internals/FAILURE_MODEL#the-simulator
#[test]
fn no_crash_point_takes_from_a_guest_what_it_flushed_to_a_block_device() {
    let total = campaign(1, 5_000, Plan::with_guests_on_block, |c| c.device_failures);
    has_all(&total);
    assert!(total.device_writes > 0, "{total:?}");
}
