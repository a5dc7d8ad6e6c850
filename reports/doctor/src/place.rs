//! What is below one path: its mount, and the devices down to those that hold the bytes.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::finding::Unseen;
use crate::kernel::Kernel;
use crate::machine::{Disk, Machine, Mount};
use crate::root::Root;

/// A mapping can be asked for of files that have a page.
const PAGE: u64 = 4096;
/// How many names of a directory are tried to find one.
const TRIED: usize = 200;
/// Loop devices on files on loop devices.
const LOOPS: usize = 8;

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Whatever it is.
    Path,
    /// A database's data.
    Data,
    /// Its redo log.
    Log,
}

/// A path, and everything below it.
#[derive(Clone, Debug)]
pub struct Place<'m> {
    /// What lies there.
    pub role: Role,
    /// The path, links followed.
    pub path: PathBuf,
    /// The mount it is on; none if it is a device itself.
    pub mount: Option<&'m Mount>,
    /// Mounts that files of loop devices below it are on.
    pub below: Vec<&'m Mount>,
    /// Block devices, topmost first, down to what holds the bytes.
    pub stack: Vec<&'m Disk>,
    /// The file system says that it is accessed directly.
    pub dax: Option<bool>,
    /// The kernel grants MAP_SYNC.
    pub map_sync: Option<bool>,
}

impl<'m> Place<'m> {
    /// The place at a path whose links are followed already.
    ///
    /// # Errors
    /// Nobody knows what it is on.
    pub fn at(
        machine: &'m Machine,
        root: &Root,
        kernel: &dyn Kernel,
        role: Role,
        path: &Path,
    ) -> Result<Self, Unseen> {
        let mut found = Self {
            role,
            path: path.to_owned(),
            mount: None,
            below: Vec::new(),
            stack: Vec::new(),
            dax: None,
            map_sync: None,
        };
        if let Some(device) =
            path.strip_prefix("/dev").ok().and_then(Path::to_str).filter(|name| is_device(machine, name))
        {
            machine.disk(device).into_iter().for_each(|disk| found.descend(machine, disk));
            return Ok(found);
        }
        let answer = kernel.about(&root.host_path(path)).unwrap_or_default();
        let numbered = answer.mount.and_then(|id| machine.mounts.iter().find(|mount| mount.id == id));
        let mount = numbered.or_else(|| machine.mount_of(path)).ok_or_else(|| {
            Unseen::asked(format!("the mount of {}", path.display()), "/proc/self/mountinfo does not list it")
        })?;
        found.mount = Some(mount);
        found.dax = answer.dax;
        machine.disks_under(mount).into_iter().for_each(|disk| found.descend(machine, disk));
        let file = a_file(root, path);
        found.map_sync = file.and_then(|file| kernel.grants_map_sync(&root.host_path(&file)).ok());
        Ok(found)
    }

    /// Adds the devices from this one on, through loop devices into the file systems their files are on.
    fn descend(&mut self, machine: &'m Machine, top: &'m Disk) {
        let disks = machine.stack(top);
        self.stack.extend(disks.iter().copied());
        for file in disks.iter().filter_map(|disk| disk.file.as_deref()) {
            let Some(below) = machine.mount_of(file).filter(|_| self.below.len() < LOOPS) else { continue };
            self.below.push(below);
            machine.disks_under(below).into_iter().for_each(|disk| self.descend(machine, disk));
        }
    }

    /// What hides the devices, if none is known.
    pub fn hidden(&self) -> Option<Unseen> {
        let mount = self.mount.filter(|_| self.stack.is_empty())?;
        let has_none = mount.in_memory() || mount.on_network() || mount.kind == "overlay";
        (!has_none).then(|| {
            let why = format!("{} on {} names no block device of this machine", mount.kind, mount.source);
            Unseen::aside(format!("the devices of {}", mount.point.display()), why)
        })
    }

    /// True if it is on a mount of which this is true.
    pub fn is_on(&self, is: impl Fn(&Mount) -> bool) -> bool {
        self.mount.is_some_and(is)
    }
}

/// True if this is the name of a device of which something is known.
fn is_device(machine: &Machine, name: &str) -> bool {
    let direct = machine.pmem.namespaces.iter().any(|space| space.device.as_deref() == Some(name));
    direct || machine.disk(name).is_some()
}

/// A file there that can be mapped: the path itself, or one in the directory.
fn a_file(root: &Root, path: &Path) -> Option<PathBuf> {
    let fits = |path: &PathBuf| {
        let found = std::fs::symlink_metadata(root.host_path(path));
        found.is_ok_and(|found| found.is_file() && found.len() >= PAGE)
    };
    let inside = || root.names(path).into_iter().take(TRIED).map(|name| path.join(name)).find(&fits);
    Some(path.to_owned()).filter(&fits).or_else(inside)
}
