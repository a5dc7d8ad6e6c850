//! The machine, as its kernel shows it: what every check is a function of.
//!
//! Input: a root directory with sysfs, procfs and /etc below it. Output: plain values, read once. A value that
//! cannot be read is absent, never guessed.

mod btrfs;
mod cpu;
mod cxl;
mod disk;
mod host;
mod kind;
mod memory;
mod mounts;
mod pmem;
mod servers;

use std::path::Path;

pub use btrfs::Btrfs;
pub use cpu::Cpu;
pub use cxl::{Cxl, DaxDevice, MemoryDevice};
pub use disk::{Disk, Partition};
pub use host::Host;
pub use kind::Link;
pub use memory::{Memory, Node};
pub use mounts::Mount;
pub use pmem::{Dimm, Namespace, Pmem, Region};
pub use servers::Server;

use crate::root::Root;

/// Everything that was read.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// The kernel's release.
    pub kernel: String,
    /// Its command line.
    pub command_line: String,
    /// Mounts of this mount namespace, in the kernel's order.
    pub mounts: Vec<Mount>,
    /// Block devices that hold something.
    pub disks: Vec<Disk>,
    /// btrfs file systems, which may be over several of them.
    pub btrfs: Vec<Btrfs>,
    /// Persistent memory.
    pub pmem: Pmem,
    /// CXL memory, and memory devices that are given to the kernel as memory.
    pub cxl: Cxl,
    /// RAM, swap, huge pages, nodes.
    pub memory: Memory,
    /// Processors, idle states, clock.
    pub cpu: Cpu,
    /// What this host does for others, and what it does to every program.
    pub host: Host,
    /// Database servers that run.
    pub servers: Vec<Server>,
}

impl Machine {
    /// Reads it.
    pub fn read(root: &Root) -> Self {
        let mut found = Self::read_all(root);
        // An image that is booted as a machine keeps its file that speaks of a container.
        if found.mount_of(Path::new("/")).is_none_or(|mount| mount.kind != "overlay") {
            found.cpu.container = None;
        }
        found
    }

    fn read_all(root: &Root) -> Self {
        let processes = servers::processes(root);
        Self {
            kernel: root.text("/proc/sys/kernel/osrelease").unwrap_or_default(),
            command_line: root.text("/proc/cmdline").unwrap_or_default(),
            mounts: mounts::read(root),
            disks: disk::read(root),
            btrfs: btrfs::read(root),
            pmem: pmem::read(root),
            cxl: cxl::read(root),
            memory: memory::read(root),
            cpu: cpu::read(root, &processes),
            host: host::read(root),
            servers: servers::read(root, &processes),
        }
    }

    /// The disk of this name, or the one that this partition is of.
    pub fn disk(&self, name: &str) -> Option<&Disk> {
        let is_it = |disk: &&Disk| disk.name == name || disk.partitions.iter().any(|part| part.name == name);
        self.disks.iter().find(is_it)
    }

    /// The disk that has this number, or a partition with it.
    pub fn disk_of(&self, dev: (u32, u32)) -> Option<&Disk> {
        self.disks.iter().find(|disk| disk.dev == dev || disk.partitions.iter().any(|part| part.dev == dev))
    }

    /// The disk that a mount is from, if it is from one.
    pub fn disk_under(&self, mount: &Mount) -> Option<&Disk> {
        // btrfs and others have numbers of their own: of them the source is what there is.
        self.disk_of(mount.dev).filter(|_| mount.dev.0 != 0).or_else(|| {
            let name = mount.source.strip_prefix("/dev/")?;
            let mapped = name.strip_prefix("mapper/");
            let is_mapped =
                |disk: &&Disk| disk.dm.as_ref().is_some_and(|dm| Some(dm.name.as_str()) == mapped);
            self.disk(name).or_else(|| self.disks.iter().find(is_mapped)).filter(|_| !mount.in_memory())
        })
    }

    /// The disks that a mount is from: several, if it is a btrfs over several.
    pub fn disks_under(&self, mount: &Mount) -> Vec<&Disk> {
        let Some(first) = self.disk_under(mount) else { return Vec::new() };
        let is_of = |found: &&Btrfs| {
            found.devices.iter().any(|device| self.disk(device).is_some_and(|disk| disk.name == first.name))
        };
        let found = self.btrfs.iter().filter(|_| mount.kind == "btrfs").find(is_of);
        let mut disks = vec![first];
        for disk in found.iter().flat_map(|found| &found.devices).filter_map(|device| self.disk(device)) {
            if !disks.iter().any(|known| known.name == disk.name) {
                disks.push(disk);
            }
        }
        disks
    }

    /// The mount that a path is on: the innermost, and of several on one point the last.
    pub fn mount_of(&self, path: &Path) -> Option<&Mount> {
        let on = self.mounts.iter().filter(|mount| path.starts_with(&mount.point));
        on.max_by_key(|mount| mount.point.components().count())
    }

    /// The disks below this one, itself first: partitions, device mapper and md walked down to what holds the bytes.
    pub fn stack<'m>(&'m self, top: &'m Disk) -> Vec<&'m Disk> {
        let mut found: Vec<&Disk> = vec![top];
        let mut next = 0;
        while let Some(disk) = found.get(next) {
            next += 1;
            for below in disk.slaves.iter().filter_map(|name| self.disk(name)) {
                if !found.iter().any(|known| known.name == below.name) {
                    found.push(below);
                }
            }
        }
        found
    }
}
