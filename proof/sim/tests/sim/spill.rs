//! A short campaign on a pool with a spill area behind it: cuts inside copies, slots that are used again, disks that fail.

use crate::common::campaign;
use seawall_sim::Plan;

// Holds: internals/FAILURE_MODEL#the-simulator
#[test]
fn no_crash_point_breaks_a_promise_with_a_spill_area() {
    // One that was killed some thousand times takes longer than all others: 41.
    campaign(42, 20_000, Plan::spilling, |c| {
        let ends = [c.replayed, c.refused, c.kills, c.takeovers, c.cuts];
        c.points > 2000 && c.spilled > 0 && c.area_failures > 0 && !ends.contains(&0)
    });
}
