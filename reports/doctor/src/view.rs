//! The part of a machine that a question is about: all of it, or what lies under one path.

use std::io;
use std::path::Path;

use crate::database::{self, Database, Engine};
use crate::finding::Unseen;
use crate::kernel::Kernel;
use crate::machine::{Disk, Machine, Mount, Namespace};
use crate::place::{Place, Role};
use crate::root::Root;

/// What is looked at.
#[derive(Debug)]
pub struct View<'m> {
    /// The machine.
    pub machine: &'m Machine,
    /// The question was about the whole machine.
    pub is_whole: bool,
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
        Self { machine, is_whole: true, places: Vec::new(), database: None, unseen: Vec::new() }
    }

    /// What is under a path.
    ///
    /// # Errors
    /// It is not there, or may not be looked at.
    pub fn of(machine: &'m Machine, root: &Root, kernel: &dyn Kernel, path: &Path) -> io::Result<Self> {
        let real = root.resolve(path)?;
        let mut view = Self { is_whole: false, ..Self::whole(machine) };
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
                format!("the content of {}", real.display()),
                format!("{e}: run as its owner, or as root"),
            )
        }));
        Ok(view)
    }

    fn add(&mut self, root: &Root, kernel: &dyn Kernel, role: Role, path: &Path) {
        match Place::at(self.machine, root, kernel, role, path) {
            Ok(place) => {
                self.unseen.extend(place.hidden().filter(|hidden| !self.unseen.contains(hidden)));
                self.places.push(place);
            }
            Err(unseen) => self.unseen.push(unseen),
        }
    }

    /// Where commits wait: the log, else what was asked about.
    pub fn log(&self) -> Option<&Place<'m>> {
        self.places.iter().find(|place| place.role == Role::Log).or(self.places.first())
    }

    /// Where the data is.
    pub fn data(&self) -> Option<&Place<'m>> {
        self.places.first()
    }

    /// True if the data lies where blocks are never overwritten, so that a page is whole if it fits into a record.
    pub fn copies_on_write(&self) -> bool {
        self.data().is_some_and(|place| place.is_on(|mount| mount.kind == "zfs"))
    }

    /// The database, if it is this one.
    pub fn database(&self, engine: Engine) -> Option<&Database> {
        self.database.as_ref().filter(|found| found.engine == engine)
    }

    /// The mounts in question, each once.
    pub fn mounts(&self) -> Vec<&'m Mount> {
        let mut found: Vec<&Mount> = Vec::new();
        let all: Vec<&Mount> = if self.is_whole {
            self.machine.mounts.iter().filter(|mount| mount.holds_files()).collect()
        } else {
            self.places
                .iter()
                .flat_map(|place| place.mount.into_iter().chain(place.below.iter().copied()))
                .collect()
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
        let all: Vec<&Disk> = if self.is_whole {
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

    /// The namespaces of persistent memory in question.
    pub fn namespaces(&self) -> Vec<&'m Namespace> {
        let disks = self.disks();
        let is_under = |name: &str| {
            let is_it = |place: &Place<'_>| {
                place.path.to_str().and_then(|path| path.strip_prefix("/dev/")) == Some(name)
            };
            disks.iter().any(|disk| disk.name == name) || self.places.iter().any(is_it)
        };
        let all = self.machine.pmem.namespaces.iter();
        all.filter(|space| self.is_whole || space.device.as_deref().is_some_and(is_under)).collect()
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
