//! A short campaign on a log on two devices: cuts that leave the copies different, one of them dying at any write, gone or
//! stale when the power is back, or one that had confirmed what it then has not.

use crate::common::campaign;
use seawall_sim::Plan;

// Holds: internals/FAILURE_MODEL#the-simulator, L21
#[test]
fn no_crash_point_breaks_a_promise_on_two_devices() {
    let total = campaign(1, 10_000, Plan::mirrored, |c| c.device_failures);
    assert!(total.replayed > 0 && total.kills > 0 && total.cuts > 0, "{total:?}");
    assert!(total.device_writes > 0 && total.absorbed > 0 && total.lies_outvoted > 0, "{total:?}");
}
