//! One guard where it stands: in a directory that may be renamed meanwhile, and is reached by a descriptor.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::fstat;
use seawall_wire::shm::Preset;

use crate::guard::{self, Among, Claim, GuardError};
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

/// What guards are raised and lowered with: for which pool, and where its programs see that they come and go.
pub struct Hand<'a> {
    pub claim: Claim,
    /// Whoever has it has the guards' lock: one thread at a time moves them.
    pub among: Among<'a>,
}

impl Guard {
    /// Cheap, and no move, if it is up.
    pub fn raise(&self, name: &OsStr, hand: &Hand<'_>) -> Result<(), GuardError> {
        guard::raise(self.preset, &at(&self.dir, name), &hand.claim, hand.among)
            .map_err(|e| shown(e, &self.dir, name))
    }

    /// Raises it after it stood aside.
    pub fn come_back(&self, name: &OsStr, hand: &Hand<'_>) -> Result<(), GuardError> {
        guard::come_back(self.preset, &at(&self.dir, name), &hand.claim, hand.among)
            .map_err(|e| shown(e, &self.dir, name))
    }

    pub fn lower(&self, name: &OsStr, hand: &Hand<'_>) -> Result<(), GuardError> {
        guard::take_down(self.preset, &at(&self.dir, name), Some(&hand.claim), hand.among)
            .map_err(|e| shown(e, &self.dir, name))
    }

    /// Removes a text that stands for nothing.
    pub fn discard(&self, name: &OsStr, hand: &Hand<'_>) -> Result<(), GuardError> {
        guard::discard(&at(&self.dir, name), hand.among).map_err(|e| shown(e, &self.dir, name))
    }

    /// False if the directory was removed, and the guard with it.
    pub fn is_in_a_directory(&self) -> bool {
        fstat(&self.dir).is_ok_and(|stat| stat.st_nlink > 0)
    }
}
