//! Volatile write caches, and whether a flush reaches them.

use crate::finding::{Finding, Sure};
use crate::machine::{Disk, Link};
use crate::view::View;

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for disk in view.leaves() {
        let wrong = overridden(disk).or_else(|| not_offered(disk)).or_else(|| refused(disk));
        found.extend(wrong.or_else(|| volatile(disk)).or_else(|| claims(disk)));
    }
    found.extend(view.machine.host.drbd.iter().filter(|drbd| drbd.order == 'n').map(|drbd| {
        Finding::durability("drbd-no-flush", &drbd.name)
            .what(format!("{} mirrors without flushing its disk (wo:n)", drbd.name))
            .why("A write is acknowledged while the disk's cache may hold it: a power cut of both hosts loses it")
            .sure(Sure::High, "/proc/drbd says so; it does no harm if the cache has a battery")
            .type_in("drbdsetup disk-options --disk-flushes=yes --md-flushes=yes MINOR")
    }));
    found
}

/// The device said that it has a volatile cache, and the kernel is set to believe the contrary.
fn overridden(disk: &Disk) -> Option<Finding> {
    (disk.flushed == Some(false) && disk.volatile_cache == Some(true)).then(|| {
        Finding::durability("write-cache-overridden", &disk.name)
            .what(format!(
                "{} has a volatile write cache, and the kernel is set to believe that it has none",
                disk.name
            ))
            .why(
                "Something wrote \"write through\" into queue/write_cache, so the kernel sends this device \
                 no flush at all. fsync returns while data is in a cache that a power cut empties",
            )
            .sure(Sure::High, "the device's report and the kernel's setting differ")
            .type_in(format!("echo 'write back' > /sys/block/{}/queue/write_cache", disk.name))
            .type_in(
                "grep -rl write_cache /etc/udev/rules.d /usr/lib/udev/rules.d    # the rule that sets it at \
                 each start",
            )
    })
}

/// A virtual disk, or one of the network, whose other side has no flush to offer.
fn not_offered(disk: &Disk) -> Option<Finding> {
    let by_virtio = disk.virtio.as_ref().is_some_and(|virtio| !virtio.flush);
    let by_nbd = disk.link == Link::Nbd && disk.flushed == Some(false);
    let (who, mend) = match () {
        () if by_virtio => (
            "The hypervisor",
            "# QEMU: cache=none or cache=writeback; others: a cache mode that honours flush",
        ),
        () if by_nbd => ("The server", "# nbd-server: flush = true and fua = true; qemu-nbd: --cache=none"),
        () => return None,
    };
    Some(
        Finding::durability("flush-not-offered", &disk.name)
            .what(format!("{who} offers no flush for {}", disk.name))
            .why(
                "The kernel sends no flush, and fsync returns when the other side has the data, perhaps only \
                 in its page cache. A power cut there loses data that was acknowledged here",
            )
            .sure(
                Sure::Medium,
                "it does no harm if every write there goes through to the medium; whether it does is not \
                 visible from here",
            )
            .type_in(mend),
    )
}

/// null_blk, which keeps nothing.
fn refused(disk: &Disk) -> Option<Finding> {
    (disk.link == Link::Null).then(|| {
        Finding::durability("device-keeps-nothing", &disk.name)
            .what(format!("{} is null_blk, a device for measuring", disk.name))
            .why("It keeps written data in RAM, or nowhere")
            .type_in("# move the data to a disk")
    })
}

fn volatile(disk: &Disk) -> Option<Finding> {
    let fua = disk.fua == Some(true);
    let physical = !disk.link.is_virtual() && !disk.link.is_network() && disk.link != Link::Pmem;
    (disk.flushed == Some(true) && physical).then(|| {
        let way = if fua {
            "writes a log record through it (FUA) or flushes it"
        } else {
            "flushes all of it: it has no FUA"
        };
        Finding::information("volatile-write-cache", &disk.name)
            .what(format!("{} {} has a volatile write cache", disk.name, disk.model))
            .why(format!(
                "Each commit {way}, which takes from some 0.1 ms on good drives to several ms on others. A \
                 drive with power-loss protection reports no such cache"
            ))
            .sure(Sure::Medium, "the drive says so; whether it obeys a flush cannot be seen")
            .type_in(smart(disk))
    })
}

fn smart(disk: &Disk) -> String {
    match disk.link {
        Link::Nvme => format!("nvme id-ctrl -H /dev/{} | grep -A2 vwc", disk.name),
        _ => format!("smartctl -g wcache /dev/{0}; hdparm -W /dev/{0}", disk.name),
    }
}

/// Drives at this machine's own bus that say they need no flush. Of clouds' volumes that is their provider's word.
fn claims(disk: &Disk) -> Option<Finding> {
    let physical = matches!(disk.link, Link::Nvme | Link::Sata | Link::Scsi) && !disk.is_cloud();
    (disk.flushed == Some(false) && physical).then(|| {
        Finding::information("claims-no-volatile-cache", &disk.name)
            .what(format!("{} {} says it has no volatile write cache", disk.name, disk.model))
            .why(
                "The kernel sends it no flush, so data counts as durable as soon as the device has \
                 acknowledged it. That is right for drives with power-loss protection and for arrays with a \
                 good battery, and loses data on any device whose claim is false",
            )
            .sure(
                Sure::Medium,
                "it is the device's own claim; its data sheet, and the state of its battery, are not visible \
                 from here",
            )
            .type_in(smart(disk))
    })
}
