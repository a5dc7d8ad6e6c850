//! Schedulers and queues.

use crate::finding::{Finding, Sure};
use crate::machine::{Disk, Link};
use crate::view::View;

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let cpus = view.machine.cpu.count;
    let named = !view.is_whole;
    let disks = view.leaves().into_iter();
    disks
        .flat_map(|disk| [scheduler(disk), depth(disk), hardware(disk, cpus), turns(disk).filter(|_| named)])
        .flatten()
        .collect()
}

fn scheduler(disk: &Disk) -> Option<Finding> {
    let is = disk.scheduler.as_deref()?;
    let fast = matches!(disk.link, Link::Nvme | Link::NvmeOverFabrics | Link::Pmem);
    let wanted = if fast || !disk.rotational { "none" } else { "mq-deadline" };
    let (why, sure) = match is {
        "bfq" | "cfq" => (
            "It shares a disk fairly between programs and holds a database's log back for others",
            Sure::Medium,
        ),
        "none" => return None,
        _ if fast => (
            "The drive orders requests itself: the scheduler adds a lock and a queue to each commit",
            Sure::Low,
        ),
        _ => return None,
    };
    Some(
        Finding::speed("scheduler", &disk.name)
            .what(format!("{} has the scheduler {is}", disk.name))
            .why(why)
            .sure(sure, "the cost depends on the load")
            .type_in(format!("echo {wanted} > /sys/block/{}/queue/scheduler", disk.name))
            .type_in("# for good: a udev rule, ACTION==\"add|change\", ATTR{queue/scheduler}=\"none\""),
    )
}

fn depth(disk: &Disk) -> Option<Finding> {
    let depth = disk.depth.filter(|depth| *depth <= 1)?;
    Some(
        Finding::speed("queue-depth", &disk.name)
            .what(format!("{} takes {depth} command at a time", disk.name))
            .why("Reads and checkpoints queue behind each commit's write. SATA disks take 31 with NCQ, which a controller in IDE mode or a quirk switches off")
            .type_in(format!("echo 31 > /sys/block/{}/device/queue_depth", disk.name))
            .type_in("# or AHCI instead of IDE or RAID in the firmware's settings"),
    )
}

fn hardware(disk: &Disk, cpus: usize) -> Option<Finding> {
    let many = matches!(disk.link, Link::VirtioBlk | Link::Nvme);
    (many && disk.queues == 1 && cpus >= 4).then(|| {
        Finding::speed("one-hardware-queue", &disk.name)
            .what(format!("{} has one queue for {cpus} processors", disk.name))
            .why("All processors share its lock and its interrupt: sessions that read at the same moment wait for each other")
            .sure(Sure::Low, "it matters only with fast storage and many sessions")
            .type_in("# QEMU: -device virtio-blk-pci,num-queues=N; libvirt: <driver queues='N'/>")
    })
}

fn turns(disk: &Disk) -> Option<Finding> {
    (disk.rotational && matches!(disk.link, Link::Sata | Link::Scsi | Link::Usb)).then(|| {
        Finding::speed("disk-turns", &disk.name)
            .what(format!("{} {} is a rotating disk", disk.name, disk.model))
            .why("Each commit waits for its sector to come by: 4 to 10 ms, some 100 commits a second for one session")
            .sure(Sure::Medium, "an array behind a controller with a battery may hide it")
            .type_in(format!("smartctl -i /dev/{}", disk.name))
    })
}
