//! Devices made of devices: what they do with flushes, and what they lose.

use crate::finding::{Finding, Sure};
use crate::machine::{Disk, Link};
use crate::view::View;

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let stacked = view.disks().into_iter().filter(|disk| disk.link.is_stacked());
    stacked
        .flat_map(|disk| [swallows(disk, view), degraded(disk), hole(disk), write_back(disk), file(disk)])
        .flatten()
        .collect()
}

/// The kernel sends no flush to the upper one, so none reaches the lower one.
fn swallows(disk: &Disk, view: &View<'_>) -> Option<Finding> {
    let below = view.machine.stack(disk);
    let volatile = below
        .iter()
        .skip(1)
        .find(|below| below.flushed == Some(true))
        .filter(|_| disk.flushed == Some(false))?;
    Some(
        Finding::durability("flush-not-passed-down", &disk.name)
            .what(format!(
                "{} takes no flush, and {} below it has a volatile cache",
                named(disk),
                volatile.name
            ))
            .why(
                "fsync on the upper device sends nothing down: the content of the lower one's cache is lost \
                 when the power fails",
            )
            .sure(Sure::High, "the queues of both say so")
            .type_in(format!("cat /sys/block/{{{},{}}}/queue/write_cache", disk.name, volatile.name))
            .type_in(format!("echo 'write back' > /sys/block/{}/queue/write_cache", disk.name)),
    )
}

fn named(disk: &Disk) -> String {
    disk.dm.as_ref().map_or_else(|| disk.name.clone(), |dm| format!("{} ({})", disk.name, dm.name))
}

fn degraded(disk: &Disk) -> Option<Finding> {
    let md = disk.md.as_ref().filter(|md| md.degraded > 0)?;
    Some(
        Finding::durability("array-degraded", &disk.name)
            .what(format!("{} ({}) lacks {} of its members", disk.name, md.level, md.degraded))
            .why("The next disk that fails may take the data with it")
            .type_in("cat /proc/mdstat")
            .type_in(format!("mdadm --manage /dev/{} --add DEVICE", disk.name)),
    )
}

/// RAID 4, 5 and 6 write data and parity one after the other.
fn hole(disk: &Disk) -> Option<Finding> {
    let md = disk.md.as_ref().filter(|md| matches!(md.level.as_str(), "raid4" | "raid5" | "raid6"))?;
    let closed = matches!(md.policy.as_str(), "journal" | "ppl");
    (!closed).then(|| {
        Finding::durability("array-write-hole", &disk.name)
            .what(format!("{} is {} with neither a journal nor a partial parity log", disk.name, md.level))
            .why(
                "A power cut between data and parity, followed by the loss of a disk before the resync, \
                 damages blocks that were never written to. Each small write also reads before it writes",
            )
            .sure(Sure::High, "md says how it keeps consistency")
            .type_in(format!("mdadm --grow --consistency-policy=ppl /dev/{}     # raid5", disk.name))
            .type_in("# or raid10, which has no parity and is faster for a log")
    })
}

fn write_back(disk: &Disk) -> Option<Finding> {
    let mode = disk.cache_mode.as_deref().filter(|mode| *mode == "writeback")?;
    Some(
        Finding::durability("cache-writeback", &disk.name)
            .what(format!("{} runs bcache with {mode}", disk.name))
            .why(
                "Data that is only on the cache device is lost if that device fails: it must be as redundant \
                 as the disks behind it",
            )
            .sure(Sure::Medium, "Seawall did not examine whether the cache device is mirrored")
            .type_in(format!("echo writethrough > /sys/block/{}/bcache/cache_mode", disk.name)),
    )
}

fn file(disk: &Disk) -> Option<Finding> {
    let file = disk.file.as_ref().filter(|_| disk.link == Link::Loop)?;
    Some(
        Finding::speed("loop-device", &disk.name)
            .what(format!("{} is the file {}", disk.name, file.display()))
            .why("Each flush becomes an fsync of that file, by a thread of the kernel: two file systems commit instead of one")
            .type_in("# give the database a partition or a logical volume"),
    )
}
