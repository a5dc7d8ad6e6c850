//! What of a machine could be made ready, and the command for each.

use std::path::PathBuf;

use seawall_doctor::machine::{Link, Machine};
use serde::Serialize;

use crate::disk;
use crate::host::Host;

/// Something that nobody uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Free {
    /// As `seawall provision` takes it.
    pub source: String,
    /// What it is.
    pub what: String,
    /// Bytes.
    pub bytes: u64,
    /// A command that makes it ready, as an example.
    pub example: String,
}

/// All of it.
pub fn free(host: &dyn Host, machine: &Machine) -> Vec<Free> {
    let mut found = modules(machine);
    found.extend(regions(machine));
    found.extend(namespaces(host, machine));
    found.extend(cxl(machine));
    found.extend(dax(machine));
    found.extend(disks(host, machine));
    found
}

/// Optane modules that the firmware is not set to use as persistent memory yet.
fn modules(machine: &Machine) -> Vec<Free> {
    let names: Vec<&str> = machine.pmem.dimms.iter().map(|module| module.name.as_str()).collect();
    if names.is_empty() || !machine.pmem.regions.is_empty() {
        return Vec::new();
    }
    vec![Free {
        source: names.join(" "),
        what:
            "modules of persistent memory that are not in a region yet: their firmware makes one at the next \
             start"
                .into(),
        bytes: 0,
        example:
            "ipmctl create -goal PersistentMemoryType=AppDirect      # then restart, and: seawall provision"
                .into(),
    }]
}

fn regions(machine: &Machine) -> Vec<Free> {
    let regions = machine.pmem.regions.iter().filter(|region| region.free > 0 && !region.virtio);
    let one = |region: &seawall_doctor::machine::Region| Free {
        source: region.name.clone(),
        what: "persistent memory that belongs to no namespace".into(),
        bytes: region.free,
        example: format!("seawall provision {} --mount /mnt/pmem --owner postgres --pool", region.name),
    };
    regions.map(one).collect()
}

/// Of one that was made before us, whoever made it may have plans: it is named only if it holds nothing.
fn namespaces(host: &dyn Host, machine: &Machine) -> Vec<Free> {
    let spaces = machine.pmem.namespaces.iter().filter_map(|space| {
        let device = space.device.as_ref().filter(|device| device.starts_with("pmem"))?;
        let path = PathBuf::from("/dev").join(device);
        is_free(host, &path).then(|| {
            let source = if space.mode == "fsdax" { path.display().to_string() } else { space.name.clone() };
            Free {
                example: format!("seawall provision {source} --mount /mnt/pmem --owner postgres --pool"),
                source,
                what: format!("a namespace in mode {}, empty", space.mode),
                bytes: space.bytes,
            }
        })
    });
    spaces.collect()
}

fn cxl(machine: &Machine) -> Vec<Free> {
    let one = |device: &seawall_doctor::machine::MemoryDevice| {
        let (what, bytes, how) = match device.persistent {
            0 => ("a CXL device, volatile: if no region has it yet", device.volatile, "--mode memory"),
            bytes => (
                "a CXL device, persistent: if no region has it yet",
                bytes,
                "--mount /mnt/pmem --owner postgres --pool",
            ),
        };
        let example = format!("seawall provision {} {how}", device.name);
        Free { source: device.name.clone(), what: what.into(), bytes, example }
    };
    machine.cxl.memory.iter().map(one).collect()
}

fn dax(machine: &Machine) -> Vec<Free> {
    let devices = machine.cxl.dax.iter().filter(|device| !device.as_memory && !device.of_pmem);
    let one = |device: &seawall_doctor::machine::DaxDevice| Free {
        source: device.name.clone(),
        what: "memory that the kernel does not use".into(),
        bytes: device.bytes,
        example: format!("seawall provision {}", device.name),
    };
    devices.map(one).collect()
}

fn disks(host: &dyn Host, machine: &Machine) -> Vec<Free> {
    let is_disk = |link: Link| !link.is_stacked() && !matches!(link, Link::Pmem | Link::Ram | Link::Null);
    let disks = machine.disks.iter().filter(|disk| is_disk(disk.link)).filter_map(|disk| {
        let path = PathBuf::from("/dev").join(&disk.name);
        is_free(host, &path).then(|| Free {
            source: path.display().to_string(),
            what: format!(
                "a disk that holds nothing{}",
                if disk.model.is_empty() { String::new() } else { format!(" ({})", disk.model) }
            ),
            bytes: disk.bytes,
            example: format!("seawall provision {} --pool --owner postgres", path.display()),
        })
    });
    disks.collect()
}

fn is_free(host: &dyn Host, path: &std::path::Path) -> bool {
    disk::is_unused(host, path).is_ok() && disk::is_empty(host, path).is_ok()
}
