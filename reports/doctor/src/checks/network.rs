//! Devices and file systems of the network: what a commit waits for there.

use crate::finding::{Finding, Sure};
use crate::machine::{Disk, Link, Mount};
use crate::view::View;

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let disks = view.disks().into_iter().filter(|disk| disk.link.is_network()).map(disk);
    let mounts = view.mounts().into_iter().filter(|mount| mount.on_network()).map(mount);
    let asynchronous = view.machine.host.drbd.iter().filter(|drbd| drbd.protocol != 'C').map(|drbd| {
        Finding::durability("drbd-asynchronous", &drbd.name)
            .what(format!("{} mirrors with protocol {}", drbd.name, drbd.protocol))
            .why(
                "A write is acknowledged before the other host has it on disk: after a takeover the latest \
                 commits may be missing",
            )
            .type_in("drbdadm net-options --protocol=C RESOURCE")
    });
    disks.chain(mounts).chain(asynchronous).collect()
}

fn disk(disk: &Disk) -> Finding {
    let (what, look) = match disk.link {
        Link::Iscsi => ("an iSCSI disk", "iscsiadm -m session -P 3"),
        Link::Nbd => ("a network block device", "nbd-client -check /dev/NAME"),
        Link::Rbd => ("a Ceph image", "rbd device list"),
        Link::Drbd => ("mirrored to another host", "drbdadm status"),
        _ => ("an NVMe namespace of another host", "nvme list-subsys"),
    };
    Finding::information("network-disk", &disk.name)
        .what(format!("{} is {what}", disk.name))
        .why("Each commit waits for a round trip, and for the other side's flush")
        .sure(Sure::High, "which failures the other side's cache survives is not visible from here")
        .type_in(look)
}

fn mount(mount: &Mount) -> Finding {
    let at = mount.point.display();
    Finding::information("network-file-system", at.to_string())
        .what(format!("{at} is {} from {}", mount.kind, mount.source))
        .why(
            "Each fsync waits for a round trip, and is as durable as the server makes it: with an async \
             export, not at all",
        )
        .sure(Sure::High, "how the server exports it is not visible from here")
        .type_in("exportfs -v        # on the server: sync, not async")
}
