//! A short campaign on guests whose disks are in the log: what `seawall disk` carries out, its process killed at any step, and the
//! power cut at every point.

use crate::common::campaign;
use seawall_sim::{Counts, Plan};

fn has_met_all(c: &Counts) -> bool {
    c.points > 1500 && ![c.replayed, c.cuts, c.kills, c.flushes, c.compared, c.again].contains(&0)
}

// Holds: internals/FAILURE_MODEL#the-simulator
#[test]
fn no_crash_point_takes_from_a_guest_what_it_flushed() {
    campaign(1, 12_000, Plan::with_guests, has_met_all);
}

// Holds: internals/FAILURE_MODEL#the-simulator
#[test]
fn no_crash_point_takes_from_a_guest_what_it_flushed_to_a_block_device() {
    campaign(1, 5_000, Plan::with_guests_on_block, |c| {
        has_met_all(c) && c.device_writes > 0 && c.device_failures > 0
    });
}
