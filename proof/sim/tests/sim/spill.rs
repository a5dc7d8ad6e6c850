//! A short campaign on a pool with a spill area behind it: cuts inside copies, slots that are used again, disks that fail.

use crate::common::campaign;
use seawall_sim::Plan;

// Holds: internals/FAILURE_MODEL#the-simulator
#[test]
fn no_crash_point_breaks_a_promise_with_a_spill_area() {
    // One that was killed some thousand times takes longer than all others: 41.
    let total = campaign(42, 20_000, Plan::spilling, |c| c.area_failures);
    assert!(total.points > 2000, "only {total:?}");
    assert!(total.spilled > 0 && total.replayed > 0, "{total:?}");
    assert!(total.refused > 0 && total.kills > 0 && total.takeovers > 0 && total.cuts > 0, "{total:?}");
}
