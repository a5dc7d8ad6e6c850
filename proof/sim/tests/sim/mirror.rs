//! A short campaign on a log on two devices: cuts that leave the copies different, one of them dying at any write, gone or
//! stale when the power is back, or one that had confirmed what it then has not.

use crate::common::campaign;
use seawall_sim::Plan;

// Holds: internals/FAILURE_MODEL#the-simulator, L21
#[test]
fn no_crash_point_breaks_a_promise_on_two_devices() {
    campaign(1, 10_000, Plan::mirrored, |c| {
        let writes = [c.device_failures, c.device_writes, c.absorbed];
        ![c.replayed, c.kills, c.cuts, c.lies_outvoted].contains(&0) && !writes.contains(&0)
    });
}
