//! What this host promises to others: NFS exports, and disks of virtual machines.

use crate::finding::{Finding, Sure};
use crate::view::View;

/// The findings. They are about the whole host only.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    if !view.is_whole {
        return Vec::new();
    }
    let host = &view.machine.host;
    let exports = host.exports.iter().filter(|export| export.is_async).map(|export| {
        Finding::durability("nfs-export-async", &export.path)
            .what(format!("{} is exported by NFS with async", export.path))
            .why(
                "The server acknowledges a client's fsync before the data is on disk: a power cut of the \
                 server loses commits of its clients",
            )
            .sure(Sure::High, format!("{} says so", export.file))
            .type_in("# write sync instead of async in /etc/exports, then")
            .type_in("exportfs -ra")
    });
    let guests = host.unsafe_guests.iter().map(|guest| {
        Finding::durability("guest-disk-unsafe", &guest.file)
            .what(format!("A virtual machine's disk has cache=unsafe: {}", guest.line))
            .why(
                "The hypervisor acknowledges the guest's flushes and does nothing: a power cut of this host \
                 damages the guest's databases",
            )
            .sure(Sure::High, "the definition says so")
            .type_in("qm set VMID --scsi0 VOLUME,cache=none         # Proxmox")
            .type_in("virsh edit DOMAIN                             # libvirt: cache='none'")
    });
    exports.chain(guests).collect()
}
