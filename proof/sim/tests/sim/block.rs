//! A short campaign on a block device: crash at every device write, torn in every way; some of them fail, and some devices lie.

use crate::common::campaign;
use seawall_sim::Plan;

// Holds: internals/FAILURE_MODEL#the-simulator, L22, internals/SEMANTICS#errors
#[test]
fn no_crash_point_breaks_a_promise_on_a_block_device() {
    campaign(1, 20_000, Plan::on_block, |c| {
        let writes = [c.device_failures, c.device_writes, c.cleaned, c.absorbed, c.young, c.backed];
        let ends = [c.replayed, c.kills, c.cuts, c.takeovers, c.lies_found, c.lies_believed];
        c.points > 2000 && !writes.contains(&0) && !ends.contains(&0)
    });
}
