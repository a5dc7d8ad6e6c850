//! Block devices: /sys/block, each with its queue, and what a stacked one is made of.

use std::path::{Path, PathBuf};

use super::kind::{Link, link};
use crate::root::Root;

/// A whole disk, or a device that stands for one.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// The kernel's name: `nvme0n1`.
    pub name: String,
    /// Its number.
    pub dev: (u32, u32),
    /// By which way it is reached.
    pub link: Link,
    /// Vendor and model, as the device says.
    pub model: String,
    /// Bytes.
    pub bytes: u64,
    /// The PCI function or bus it hangs on.
    pub controller: Option<String>,
    /// The memory node it is close to.
    pub node: Option<u32>,
    /// The kernel sends flushes (`write back`), or does not (`write through`).
    pub flushed: Option<bool>,
    /// What the device itself said of its cache, where that is kept apart from what the kernel does.
    pub volatile_cache: Option<bool>,
    /// Forced unit access.
    pub fua: Option<bool>,
    /// The scheduler in use.
    pub scheduler: Option<String>,
    /// It says that it turns.
    pub rotational: bool,
    /// Bytes of a logical and of a physical sector.
    pub sectors: (u64, u64),
    /// Bytes that a write with RWF_ATOMIC may have; `None` before Linux 6.11.
    pub atomic: Option<u64>,
    /// Hardware queues.
    pub queues: usize,
    /// Commands that a SCSI device takes at once.
    pub depth: Option<u32>,
    /// Partitions.
    pub partitions: Vec<Partition>,
    /// Names of the devices it is made of.
    pub slaves: Vec<String>,
    /// What device mapper says of it.
    pub dm: Option<Dm>,
    /// What md says of it.
    pub md: Option<Md>,
    /// What virtio says of it.
    pub virtio: Option<Virtio>,
    /// The file behind a loop device.
    pub file: Option<PathBuf>,
    /// bcache's mode.
    pub cache_mode: Option<String>,
}

/// Names that clouds give to volumes of theirs, and to disks that live no longer than a virtual machine.
const VOLUMES: [&str; 5] = [
    "Amazon Elastic Block Store",
    "nvme_card-pd",
    "PersistentDisk",
    "MSFT NVMe Accelerator",
    "Msft Virtual Disk",
];
const EPHEMERAL: [&str; 4] =
    ["Amazon EC2 NVMe Instance Storage", "EphemeralDisk", "Microsoft NVMe Direct Disk", "nvme_card"];

impl Disk {
    /// A cloud's, of which its provider says what is durable.
    pub fn is_cloud(&self) -> bool {
        VOLUMES.iter().any(|name| self.model.contains(name)) || self.is_ephemeral()
    }

    /// What made a device of device mapper, as its UUID begins.
    pub fn mapped_by(&self) -> Option<&'static str> {
        let known = [
            ("LVM-", "LVM"),
            ("CRYPT-", "dm-crypt"),
            ("mpath-", "multipath"),
            ("INTEGRITY-", "dm-integrity"),
        ];
        let uuid = &self.dm.as_ref()?.uuid;
        known.iter().find(|(begin, _)| uuid.starts_with(begin)).map(|(_, name)| *name)
    }

    /// It is lost when the virtual machine stops.
    pub fn is_ephemeral(&self) -> bool {
        let volume = VOLUMES.iter().any(|name| self.model.contains(name));
        !volume && EPHEMERAL.iter().any(|name| self.model.contains(name))
    }
}

/// A partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// The kernel's name.
    pub name: String,
    /// Its number.
    pub dev: (u32, u32),
    /// Where it begins, in bytes.
    pub start: u64,
}

/// Device mapper.
#[derive(Clone, Debug, Default)]
pub struct Dm {
    /// The name below /dev/mapper.
    pub name: String,
    /// Its UUID begins with its maker: `LVM-`, `CRYPT-`, `mpath-`.
    pub uuid: String,
}

/// Software RAID.
#[derive(Clone, Debug, Default)]
pub struct Md {
    /// `raid1`, `raid5` …
    pub level: String,
    /// Members that are missing.
    pub degraded: u32,
    /// `bitmap`, `resync`, `journal`, `ppl`.
    pub policy: String,
}

/// A virtio device.
#[derive(Clone, Debug, Default)]
pub struct Virtio {
    /// The device has a flush command (VIRTIO_BLK_F_FLUSH), and the driver took it.
    pub flush: bool,
}

/// Reads the devices that have a size.
pub fn read(root: &Root) -> Vec<Disk> {
    root.names("/sys/block").iter().filter_map(|name| one(root, name)).collect()
}

fn one(root: &Root, name: &str) -> Option<Disk> {
    let at = root.resolve(&Path::new("/sys/block").join(name)).ok()?;
    let sectors: u64 = root.number(at.join("size")).filter(|n| *n > 0)?;
    let text = |path: &str| root.text(at.join(path));
    let number = |path: &str| root.number(at.join(path));
    let link = link(root, name, &at);
    Some(Disk {
        name: name.into(),
        dev: dev(root, &at)?,
        link,
        model: model(root, &at),
        bytes: sectors * 512,
        controller: controller(&at),
        node: node(root, &at),
        flushed: text("queue/write_cache").map(|is| is == "write back"),
        volatile_cache: own_cache(root, &at),
        fua: text("queue/fua").map(|is| is == "1"),
        scheduler: text("queue/scheduler").and_then(|all| chosen(&all)),
        rotational: text("queue/rotational").as_deref() == Some("1"),
        sectors: (
            number("queue/logical_block_size").unwrap_or(512),
            number("queue/physical_block_size").unwrap_or(512),
        ),
        atomic: number("queue/atomic_write_unit_max_bytes"),
        queues: root.names(at.join("mq")).len(),
        depth: root.number(at.join("device/queue_depth")),
        partitions: partitions(root, &at),
        slaves: root.names(at.join("slaves")),
        dm: text("dm/name").map(|name| Dm { name, uuid: text("dm/uuid").unwrap_or_default() }),
        md: md(root, &at),
        virtio: virtio(root, &at, link),
        file: text("loop/backing_file").map(PathBuf::from),
        cache_mode: text("bcache/cache_mode").and_then(|all| chosen(&all)),
    })
}

/// `a [b] c`: b is in use.
fn chosen(all: &str) -> Option<String> {
    let inside = all.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    Some(inside.map_or(all, |(word, _)| word).to_owned()).filter(|word| !word.is_empty())
}

fn dev(root: &Root, at: &Path) -> Option<(u32, u32)> {
    let text = root.text(at.join("dev"))?;
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn model(root: &Root, at: &Path) -> String {
    let words = ["device/vendor", "device/model"].map(|name| root.text(at.join(name)).unwrap_or_default());
    let [vendor, model] = words;
    // A PCI device's vendor is a number, which tells nobody anything.
    if vendor.is_empty() || vendor.starts_with("0x") {
        model
    } else {
        format!("{vendor} {model}").trim().into()
    }
}

/// The last PCI function on the way to it.
fn controller(at: &Path) -> Option<String> {
    let is_function = |part: &str| part.len() == 12 && part.matches(':').count() == 2 && part.contains('.');
    let parts: Vec<_> = at.iter().filter_map(|part| part.to_str()).collect();
    parts.into_iter().rev().find(|part| is_function(part)).map(str::to_owned)
}

/// -1 stands for no node.
fn node(root: &Root, at: &Path) -> Option<u32> {
    let known = |dir: &Path| root.number::<i32>(dir.join("numa_node"));
    let dirs = at.ancestors().flat_map(|dir| [dir.to_owned(), dir.join("device")]);
    dirs.take(16).find_map(|dir| known(&dir)).and_then(|node| u32::try_from(node).ok())
}

/// SCSI disks and virtio keep what the device says apart from the queue's setting, which anybody with root can change.
fn own_cache(root: &Root, at: &Path) -> Option<bool> {
    let disks = at.join("device/scsi_disk");
    let scsi = root.names(&disks).into_iter().next().map(|name| disks.join(name).join("cache_type"));
    let said = scsi.and_then(|path| root.text(path)).or_else(|| root.text(at.join("cache_type")))?;
    Some(said.contains("write back"))
}

fn partitions(root: &Root, at: &Path) -> Vec<Partition> {
    let one = |name: String| {
        let at = at.join(&name);
        root.number::<u32>(at.join("partition"))?;
        Some(Partition { dev: dev(root, &at)?, start: root.number::<u64>(at.join("start"))? * 512, name })
    };
    root.names(at).into_iter().filter_map(one).collect()
}

fn md(root: &Root, at: &Path) -> Option<Md> {
    let level = root.text(at.join("md/level"))?;
    let degraded = root.number(at.join("md/degraded")).unwrap_or(0);
    Some(Md { level, degraded, policy: root.text(at.join("md/consistency_policy")).unwrap_or_default() })
}

/// `features` has a digit for each bit, the lowest first. Bit 9 is VIRTIO_BLK_F_FLUSH.
fn virtio(root: &Root, at: &Path, link: Link) -> Option<Virtio> {
    let features = root.text(at.join("device/features")).filter(|_| link == Link::VirtioBlk)?;
    Some(Virtio { flush: features.as_bytes().get(9) == Some(&b'1') })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_sysfs_are_understood() {
        assert_eq!(chosen("none [mq-deadline] kyber").as_deref(), Some("mq-deadline"));
        assert_eq!((chosen("none").as_deref(), chosen("")), (Some("none"), None));
        let at = Path::new("/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/nvme/nvme0/nvme0n1");
        assert_eq!(controller(at).as_deref(), Some("0000:3b:00.0"));
        assert_eq!(controller(Path::new("/sys/devices/virtual/block/dm-0")), None);
    }
}
