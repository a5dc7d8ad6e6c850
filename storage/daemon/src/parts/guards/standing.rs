//! One guard where it stands: in a directory that may be renamed meanwhile, and is reached by a descriptor.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::fstat;
use seawall_wire::shm::Preset;

use crate::guard::{self, Claim, GuardError};
use crate::parts::files::path_of;

/// A guard that is up, or stands aside.
pub struct Guard {
    pub preset: Preset,
    /// Its directory, wherever that is now.
    pub dir: Arc<OwnedFd>,
    /// False while it stands aside.
    pub up: bool,
    /// It protects records whose file is not to be found: it stays until they are recovered.
    pub kept: bool,
}

/// The guard's path by its directory's descriptor.
pub fn at(dir: impl AsFd, name: &OsStr) -> PathBuf {
    Path::new("/proc/self/fd").join(dir.as_fd().as_raw_fd().to_string()).join(name)
}

/// Says where it is instead of by which descriptor it was found.
pub fn shown(error: GuardError, dir: impl AsFd, name: &OsStr) -> GuardError {
    let real = path_of(dir).unwrap_or_default();
    error.at(|path| match path.file_name() {
        Some(file) if path.parent().is_some_and(|parent| parent.starts_with("/proc/self/fd")) => {
            real.join(file)
        }
        _ => real.join(name),
    })
}

impl Guard {
    pub fn raise(&self, name: &OsStr, claim: &Claim) -> Result<(), GuardError> {
        guard::raise(self.preset, &at(&self.dir, name), claim).map_err(|e| shown(e, &self.dir, name))
    }

    pub fn lower(&self, name: &OsStr, claim: &Claim) -> Result<(), GuardError> {
        guard::take_down(self.preset, &at(&self.dir, name), Some(claim))
            .map_err(|e| shown(e, &self.dir, name))
    }

    /// Removes a text that stands for nothing.
    pub fn discard(&self, name: &OsStr) -> Result<(), GuardError> {
        let text = at(&self.dir, name);
        std::fs::remove_file(&text)
            .map_err(guard::fault("remove", &text))
            .map_err(|e| shown(e, &self.dir, name))
    }

    /// False if the directory was removed, and the guard with it.
    pub fn is_in_a_directory(&self) -> bool {
        fstat(&self.dir).is_ok_and(|stat| stat.st_nlink > 0)
    }
}
