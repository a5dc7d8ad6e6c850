//! What must hold before a step: each is looked at again right before it is relied on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::host::Host;
use crate::{disk, file, mounts};

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// A program is there.
    Program {
        /// Its name.
        name: String,
        /// Debian's package that has it.
        package: String,
    },
    /// A device holds nothing, and nobody uses it.
    Empty {
        /// The device.
        device: PathBuf,
    },
    /// A region has so much that belongs to no namespace.
    Free {
        /// `region0`
        region: String,
        /// Bytes.
        bytes: u64,
    },
    /// A namespace is the one that was made, and has the device that it was expected to have.
    Namespace {
        /// `namespace0.0`
        name: String,
        /// Its UUID.
        uuid: String,
        /// `pmem0`
        device: String,
    },
    /// A file of the kernel's says this.
    Says {
        /// The file.
        path: PathBuf,
        /// What.
        text: String,
    },
    /// blkid says this of a device.
    Probed {
        /// The device.
        device: PathBuf,
        /// `UUID`, `PART_ENTRY_UUID`
        key: String,
        /// Its value.
        value: String,
    },
    /// A device carries this UUID, or nothing: it is of what is taken back.
    Ours {
        /// The device.
        device: PathBuf,
        /// The UUID.
        uuid: String,
    },
    /// Nothing is there.
    Absent {
        /// The path.
        path: PathBuf,
    },
    /// Nothing is mounted there, and nothing lies there.
    MountPoint {
        /// The directory.
        directory: PathBuf,
    },
    /// A file system with this UUID is mounted there: only then one sees what is on it.
    Mounted {
        /// The directory.
        directory: PathBuf,
        /// The UUID.
        uuid: String,
    },
    /// Nothing lies in there but what a plan put there.
    HoldsOnly {
        /// The directory.
        directory: PathBuf,
        /// The names.
        names: Vec<String>,
    },
    /// A file is as it was written, or gone.
    Unchanged {
        /// Where.
        path: PathBuf,
        /// What was written.
        text: String,
    },
    /// No record of a pool waits for its file, and nobody uses the pool.
    PoolIsEmpty {
        /// The pool.
        path: PathBuf,
    },
}

/// What every file system has.
const OF_FILE_SYSTEMS: [&str; 1] = ["lost+found"];

impl Check {
    /// A program, with the package that brings it.
    pub fn program(name: &str, package: &str) -> Self {
        Self::Program { name: name.into(), package: package.into() }
    }

    /// Looks.
    ///
    /// # Errors
    /// Why it does not hold.
    pub(crate) fn look(&self, host: &dyn Host) -> Result<(), Error> {
        match self {
            Self::Program { name, package } => program(host, name, package),
            Self::Empty { device } => {
                disk::is_unused(host, device).and_then(|()| disk::is_empty(host, device))
            }
            Self::Free { region, bytes } => free(host, region, *bytes),
            Self::Namespace { name, uuid, device } => namespace(host, name, uuid, device),
            Self::Says { path, text } => says(host, path, text),
            Self::Probed { device, key, value } => probed(host, device, key, value),
            Self::Ours { device, uuid } => probed(host, device, "UUID", uuid)
                .or_else(|wrong| disk::is_empty(host, device).map_err(|_| wrong)),
            Self::Absent { path } => absent(host, path),
            Self::MountPoint { directory } => mount_point(host, directory),
            Self::Mounted { directory, uuid } => mounted(host, directory, uuid),
            Self::HoldsOnly { directory, names } => holds_only(host, directory, names),
            Self::Unchanged { path, text } => unchanged(host, path, text),
            Self::PoolIsEmpty { path } => pool_is_empty(host, path),
        }
    }
}

fn program(host: &dyn Host, name: &str, package: &str) -> Result<(), Error> {
    if host.has_program(name) {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{name} is not installed: apt-get install {package}, or the package that has it on this system"
    )))
}

fn free(host: &dyn Host, region: &str, bytes: u64) -> Result<(), Error> {
    let path = format!("/sys/bus/nd/devices/{region}/available_size");
    let there: u64 = host.root().number(&path).unwrap_or(0);
    if there >= bytes {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{region} has {there} bytes that belong to no namespace, and {bytes} are needed"
    )))
}

fn namespace(host: &dyn Host, name: &str, uuid: &str, device: &str) -> Result<(), Error> {
    let found = host.root().text(format!("/sys/bus/nd/devices/{name}/uuid")).unwrap_or_default();
    if found == uuid && host.root().has(format!("/dev/{device}")) {
        return Ok(());
    }
    // A namespace of somebody else came in between: its content is not ours to write over.
    Err(Error::refused(format!(
        "{name} with /dev/{device} should be the new namespace {uuid}, and is another one: ndctl list shows \
         what there is"
    )))
}

fn says(host: &dyn Host, path: &Path, text: &str) -> Result<(), Error> {
    let found = host.root().text(path).unwrap_or_default();
    if found == text {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{} should be {text}, and is {found:?}: it is another one now",
        path.display()
    )))
}

fn probed(host: &dyn Host, device: &Path, key: &str, value: &str) -> Result<(), Error> {
    let found = disk::probe(host, device, key).unwrap_or_default();
    if found == value {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{} is no longer the device that was set up there ({key} {value}): names of devices change. To find \
         its new name: blkid -t {key}={value}",
        device.display()
    )))
}

fn absent(host: &dyn Host, path: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(host.root().host_path(path)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::file(path)(e)),
        Ok(_) => Err(Error::refused(format!("{} already exists", path.display()))),
    }
}

fn mount_point(host: &dyn Host, directory: &Path) -> Result<(), Error> {
    if let Some(mount) = mounts::at(host.root(), directory) {
        return Err(Error::refused(format!("{} is mounted on {}", mount.source, directory.display())));
    }
    holds_only(host, directory, &[])
}

fn mounted(host: &dyn Host, directory: &Path, uuid: &str) -> Result<(), Error> {
    let source = mounts::at(host.root(), directory).map(|mount| PathBuf::from(mount.source));
    if source.and_then(|source| disk::probe(host, &source, "UUID")).as_deref() == Some(uuid) {
        return Ok(());
    }
    Err(Error::refused(format!(
        "the file system {uuid} is not mounted on {}, so it cannot be seen whether anything is on it: mount \
         it there first",
        directory.display()
    )))
}

fn holds_only(host: &dyn Host, directory: &Path, names: &[String]) -> Result<(), Error> {
    let is_known = |name: &String| names.contains(name) || OF_FILE_SYSTEMS.contains(&name.as_str());
    match host.root().names(directory).into_iter().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => Err(Error::refused(format!(
            "{} holds {name}: move away everything that you want to keep, or choose another directory",
            directory.display()
        ))),
    }
}

fn unchanged(host: &dyn Host, path: &Path, text: &str) -> Result<(), Error> {
    let found = file::text(&host.root().host_path(path))?;
    if found.is_empty() || found == text {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{} was changed since it was written: move your version away first",
        path.display()
    )))
}

/// Its own tool says it: a pool may have been in use, and its records are nobody else's to judge.
fn pool_is_empty(host: &dyn Host, path: &Path) -> Result<(), Error> {
    if !host.root().has(path) {
        return Ok(());
    }
    let shown = path.display();
    let words = ["seawall", "inspect", "--json", &path.to_string_lossy()].map(str::to_owned);
    let said = host.run(&words, "").map_err(|why| Error::refused(format!("{shown}: {why}")))?;
    let view: serde_json::Value =
        serde_json::from_str(&said).map_err(|e| Error::refused(format!("seawall inspect {shown}: {e}")))?;
    if view["live"].as_u64() == Some(0) && view["files"].as_array().is_some_and(Vec::is_empty) {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{shown} still has files: seawall detach or seawall stop brings them up to date and releases them"
    )))
}
