//! A short campaign on a block device: crash at every device write, torn in every way; some of them fail, and some devices lie.

use crate::common::campaign;
use seawall_sim::Plan;

// Holds: internals/FAILURE_MODEL#the-simulator, L22, internals/SEMANTICS#errors
#[test]
fn no_crash_point_breaks_a_promise_on_a_block_device() {
    let total = campaign(1, 20_000, Plan::on_block, |c| c.device_failures);
    assert!(total.points > 2000, "only {total:?}");
    assert!(total.replayed > 0 && total.kills > 0 && total.cuts > 0 && total.takeovers > 0, "{total:?}");
    assert!(total.lies_found > 0 && total.lies_believed > 0, "{total:?}");
    assert!(total.young > 0 && total.backed > 0, "{total:?}");
    assert!(total.device_writes > 0 && total.cleaned > 0 && total.absorbed > 0, "{total:?}");
}
