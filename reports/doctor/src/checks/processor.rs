//! What a processor does while a commit waits: idle states and frequencies.

use crate::finding::{Finding, Sure};
use crate::machine::Link;
use crate::view::View;

/// Whoever set so much has thought about it.
const ENOUGH_NS: u64 = 50_000;

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    [halts(view), frequency(view)].into_iter().flatten().collect()
}

/// Under a hypervisor an idle processor is given back at once, and to get it again takes longer than a fast disk's answer.
fn halts(view: &View<'_>) -> Option<Finding> {
    let cpu = &view.machine.cpu;
    let ns = cpu.halt_poll_ns.filter(|ns| *ns < ENOUGH_NS)?;
    // On persistent memory nothing waits.
    let waits = view.leaves().iter().any(|disk| !matches!(disk.link, Link::Pmem));
    waits.then(|| {
        Finding::speed("halts-at-once", "guest_halt_poll_ns")
            .what(format!(
                "An idle processor of this virtual machine looks for work for {ns} ns, then returns to the \
                 host"
            ))
            .why(
                "A session that waits for a commit is woken on a processor that the hypervisor must schedule \
                 first: that can take longer than the disk",
            )
            .sure(
                Sure::Medium,
                "it matters where commits wait for a fast device or another process; the change costs the \
                 host processor time",
            )
            .type_in("echo 200000 > /sys/module/haltpoll/parameters/guest_halt_poll_ns")
            .type_in("# for good: haltpoll.guest_halt_poll_ns=200000 on the kernel's command line")
    })
}

/// The drivers of Intel's and AMD's newer processors have a powersave of another meaning.
fn frequency(view: &View<'_>) -> Option<Finding> {
    let (driver, governor) = view.machine.cpu.frequency.as_ref()?;
    let own_meaning = driver.starts_with("intel_pstate") || driver.starts_with("amd-pstate");
    (governor == "powersave" && !own_meaning).then(|| {
        Finding::speed("processors-at-lowest-frequency", "scaling_governor")
            .what(format!("Processors run at their lowest frequency ({driver}, powersave)"))
            .why("Every statement takes longer, and each commit's wake-up too")
            .type_in("cpupower frequency-set -g performance")
    })
}
