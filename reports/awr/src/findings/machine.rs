//! The machine's troubles.

use super::finding::{Finding, Kind, Sure};
use crate::period::Period;

/// A disk that is busy all the time, with a queue.
pub fn disk_is_busy(period: &Period) -> Option<Finding> {
    let disk =
        period.machine.disks.iter().filter(|d| d.util >= 80.0).max_by(|a, b| a.util.total_cmp(&b.util))?;
    Some(Finding {
        kind: Kind::Symptom,
        title: format!("The disk {} is busy", disk.name),
        share: None,
        because: format!(
            "{:.0} % of the time, {:.0} requests a second, {:.2} ms each, {:.1} waiting on average.",
            disk.util, disk.tps, disk.await_ms, disk.queue
        ),
        action: "see which files and statements cause it; a device that works on many requests at once (NVMe, an array) can do \
                 more even at 100 %"
            .into(),
        benefit: None,
        sure: Sure::Medium,
        sure_because: "%util says busy, not full".into(),
    })
}

/// Memory that is waited for.
pub fn memory_is_short(period: &Period) -> Option<Finding> {
    let stalled = period.machine.pressure.get("memory some").copied().filter(|v| *v >= 2.0)?;
    Some(Finding {
        kind: Kind::Problem,
        title: "Memory is short".into(),
        share: None,
        because: format!("Tasks were held up for memory in {stalled:.1} % of the time."),
        action: "smaller caches or more memory; look for swapping".into(),
        benefit: None,
        sure: Sure::High,
        sure_because: "the kernel's pressure stall information".into(),
    })
}
