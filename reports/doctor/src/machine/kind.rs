//! By which way a block device is reached: from its name, its place in sysfs, and what its driver says.

use std::path::Path;

use serde::Serialize;

use crate::root::Root;

/// The way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// NVMe on this machine's bus.
    Nvme,
    /// NVMe over a network.
    NvmeOverFabrics,
    /// A disk at a SATA port.
    Sata,
    /// A disk or array at a SCSI host.
    Scsi,
    /// A disk at an iSCSI session.
    Iscsi,
    /// A disk of a Fibre Channel fabric.
    FibreChannel,
    /// A disk at a USB port.
    Usb,
    /// A virtual machine's disk by virtio-blk.
    VirtioBlk,
    /// A virtual machine's disk by virtio-scsi.
    VirtioScsi,
    /// A virtual machine's disk by Hyper-V.
    HyperV,
    /// A virtual machine's disk by Xen.
    Xen,
    /// Persistent memory as a block device.
    Pmem,
    /// Device mapper: LVM, dm-crypt, multipath …
    Mapper,
    /// Linux software RAID.
    Raid,
    /// bcache.
    Bcache,
    /// A file as a device.
    Loop,
    /// A network block device.
    Nbd,
    /// Ceph's.
    Rbd,
    /// A device that is mirrored to another host.
    Drbd,
    /// RAM as a device.
    Ram,
    /// null_blk: it throws everything away, or keeps it in RAM.
    Null,
    /// Something else.
    #[default]
    Other,
}

impl Link {
    /// True if other hosts hold the bytes, or a copy that every write waits for.
    pub fn is_network(self) -> bool {
        matches!(self, Self::NvmeOverFabrics | Self::Iscsi | Self::Nbd | Self::Rbd | Self::Drbd)
    }

    /// True if a hypervisor is between us and what holds the bytes.
    pub fn is_virtual(self) -> bool {
        matches!(self, Self::VirtioBlk | Self::VirtioScsi | Self::HyperV | Self::Xen)
    }

    /// True if it is made of other devices, whose properties are reported for themselves.
    pub fn is_stacked(self) -> bool {
        matches!(self, Self::Mapper | Self::Raid | Self::Bcache | Self::Loop)
    }
}

/// Names by their beginnings. Longer ones come first.
const BY_NAME: [(&str, Link); 14] = [
    ("dm-", Link::Mapper),
    ("md", Link::Raid),
    ("bcache", Link::Bcache),
    ("loop", Link::Loop),
    ("nbd", Link::Nbd),
    ("rbd", Link::Rbd),
    ("drbd", Link::Drbd),
    ("zram", Link::Ram),
    ("ram", Link::Ram),
    ("nullb", Link::Null),
    ("pmem", Link::Pmem),
    ("ndblk", Link::Pmem),
    ("xvd", Link::Xen),
    ("vd", Link::VirtioBlk),
];

/// The way to the device `name` whose directory is `at`.
pub fn link(root: &Root, name: &str, at: &Path) -> Link {
    if let Some((_, link)) = BY_NAME.iter().find(|(begin, _)| name.starts_with(begin)) {
        return *link;
    }
    if name.starts_with("nvme") {
        return nvme(root, at);
    }
    if name.starts_with("sd") { scsi(root, at) } else { Link::Other }
}

/// With native multipath the namespace hangs below its subsystem, whose controllers say how they are reached.
fn nvme(root: &Root, at: &Path) -> Link {
    let device = at.join("device");
    let controllers = root.names(&device).into_iter().filter(|name| name.starts_with("nvme"));
    let mut said = std::iter::once(device.join("transport"))
        .chain(controllers.map(|name| device.join(name).join("transport")))
        .filter_map(|path| root.text(path));
    match said.next().as_deref() {
        None | Some("pcie" | "apple-nvme") => Link::Nvme,
        Some(_) => Link::NvmeOverFabrics,
    }
}

fn scsi(root: &Root, at: &Path) -> Link {
    let vendor = root.text(at.join("device/vendor")).unwrap_or_default();
    let path = at.to_string_lossy();
    let has = |part: &str| path.contains(part);
    match () {
        () if has("/session") => Link::Iscsi,
        () if has("/rport-") => Link::FibreChannel,
        () if has("/usb") => Link::Usb,
        () if has("/virtio") => Link::VirtioScsi,
        () if vendor == "Msft" || has("/VMBUS") => Link::HyperV,
        () if has("/ata") => Link::Sata,
        () => Link::Scsi,
    }
}
