//! The part of a machine that a question is about: all of it, or what lies under one path.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::database::{self, Database, Engine};
use crate::finding::Unseen;
use crate::kernel::Kernel;
use crate::machine::{Disk, Machine, Mount};
use crate::root::Root;

/// A mapping can be asked for of files that have a page.
const PAGE: u64 = 4096;
/// How many names of a directory are tried to find one.
const TRIED: usize = 200;

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
    /// The mount it is on.
    pub mount: &'m Mount,
    /// Block devices, topmost first, down to what holds the bytes.
    pub stack: Vec<&'m Disk>,
    /// The file system says that it is accessed directly.
    pub dax: Option<bool>,
    /// The kernel grants MAP_SYNC.
    pub map_sync: Option<bool>,
}

/// What is looked at.
#[derive(Debug)]
pub struct View<'m> {
    /// The machine.
    pub machine: &'m Machine,
    /// The places that were asked about; none if it is the whole machine.
    pub places: Vec<Place<'m>>,
    /// The database there.
    pub database: Option<Database>,
    /// What could not be seen.
    pub unseen: Vec<Unseen>,
}

impl<'m> View<'m> {
    /// All of a machine.
    pub fn whole(machine: &'m Machine) -> Self {
        Self { machine, places: Vec::new(), database: None, unseen: Vec::new() }
    }

    /// What is under a path.
    ///
    /// # Errors
    /// It is not there, or may not be looked at.
    pub fn of(machine: &'m Machine, root: &Root, kernel: &dyn Kernel, path: &Path) -> io::Result<Self> {
        let real = root.resolve(path)?;
        let mut view = Self::whole(machine);
        view.database = database::find(root, &real);
        let role = if view.database.is_some() { Role::Data } else { Role::Path };
        view.add(root, kernel, role, &real);
        if let Some(found) = &mut view.database {
            view.unseen.append(&mut found.unseen);
            let log = found.log.clone();
            view.add(root, kernel, Role::Log, &log);
        }
        let there = root.host_path(&real);
        let closed = there.is_dir().then(|| std::fs::read_dir(&there).err()).flatten();
        let closed = closed.filter(|e| e.kind() == io::ErrorKind::PermissionDenied);
        view.unseen.extend(closed.map(|e| {
            Unseen::asked(
                format!("what is in {}", real.display()),
                format!("{e}: run as its owner, or as root"),
            )
        }));
        Ok(view)
    }

    fn add(&mut self, root: &Root, kernel: &dyn Kernel, role: Role, path: &Path) {
        let answer = kernel.about(&root.host_path(path)).unwrap_or_default();
        let machine = self.machine;
        let numbered = answer.mount.and_then(|id| machine.mounts.iter().find(|mount| mount.id == id));
        let Some(mount) = numbered.or_else(|| machine.mount_of(path)) else {
            self.unseen.push(Unseen::asked(
                format!("the mount of {}", path.display()),
                "/proc/self/mountinfo has none",
            ));
            return;
        };
        let stack = stack_under(machine, mount, 0);
        if stack.is_empty() && !mount.in_memory() && !mount.on_network() && mount.kind != "overlay" {
            let what = format!("the devices of {}", mount.point.display());
            let why = format!("{} on {} names no block device of this machine", mount.kind, mount.source);
            self.unseen.push(Unseen::aside(what, why));
        }
        let file = a_file(root, path);
        let map_sync = file.and_then(|file| kernel.grants_map_sync(&root.host_path(&file)).ok());
        self.places.push(Place { role, path: path.to_owned(), mount, stack, dax: answer.dax, map_sync });
    }

    /// True if the question was about the whole machine.
    pub fn is_whole(&self) -> bool {
        self.places.is_empty()
    }

    /// Where commits wait: the log, else what was asked about.
    pub fn log(&self) -> Option<&Place<'m>> {
        self.places.iter().find(|place| place.role == Role::Log).or(self.places.first())
    }

    /// Where the data is.
    pub fn data(&self) -> Option<&Place<'m>> {
        self.places.first()
    }

    /// The database, if it is this one.
    pub fn database(&self, engine: Engine) -> Option<&Database> {
        self.database.as_ref().filter(|found| found.engine == engine)
    }

    /// The mounts in question, each once.
    pub fn mounts(&self) -> Vec<&'m Mount> {
        let mut found: Vec<&Mount> = Vec::new();
        let all: Vec<&Mount> = if self.is_whole() {
            self.machine.mounts.iter().filter(|mount| mount.holds_files()).collect()
        } else {
            self.places.iter().map(|place| place.mount).collect()
        };
        for mount in all {
            // A bind mount is the same file system once more.
            if !found.iter().any(|known| known.dev == mount.dev && known.kind == mount.kind) {
                found.push(mount);
            }
        }
        found
    }

    /// The block devices in question, each once.
    pub fn disks(&self) -> Vec<&'m Disk> {
        let mut found: Vec<&Disk> = Vec::new();
        let all: Vec<&Disk> = if self.is_whole() {
            self.machine.disks.iter().filter(|disk| is_of_interest(self.machine, disk)).collect()
        } else {
            self.places.iter().flat_map(|place| place.stack.iter().copied()).collect()
        };
        for disk in all {
            if !found.iter().any(|known| known.name == disk.name) {
                found.push(disk);
            }
        }
        found
    }

    /// Of them those that hold the bytes themselves.
    pub fn leaves(&self) -> Vec<&'m Disk> {
        self.disks().into_iter().filter(|disk| !disk.link.is_stacked()).collect()
    }
}

/// Nobody keeps anything on a RAM disk, or on the image of a package.
fn is_of_interest(machine: &Machine, disk: &Disk) -> bool {
    use crate::machine::Link::{Loop, Null, Ram};
    let in_use = || machine.mounts.iter().filter(|mount| mount.holds_files()).any(|m| m.dev == disk.dev);
    !matches!(disk.link, Ram | Null | Loop) || in_use()
}

/// Devices below a mount, through loop devices into the file systems their files are on.
fn stack_under<'m>(machine: &'m Machine, mount: &Mount, depth: usize) -> Vec<&'m Disk> {
    let Some(top) = machine.disk_under(mount).filter(|_| depth < 8) else { return Vec::new() };
    let mut found = machine.stack(top);
    let files: Vec<&Path> = found.iter().filter_map(|disk| disk.file.as_deref()).collect();
    for below in files.into_iter().filter_map(|file| machine.mount_of(file)) {
        found.extend(stack_under(machine, below, depth + 1));
    }
    found
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
