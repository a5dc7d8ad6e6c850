//! Why a disk is not served.

use std::io;
use std::path::PathBuf;

/// What is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum Refused {
    #[error("{0} is not a regular file, and an image must be one")]
    NoFile(PathBuf),
    #[error(
        "{0}: the name of an image must end in .img or .raw, because Seawall recognises its guard by that \
         name: rename it"
    )]
    Name(PathBuf),
    #[error(
        "{0} is in the format qcow2, and Seawall serves raw disks only: \
         `qemu-img convert -O raw {0} NEW.img` makes one"
    )]
    Qcow2(PathBuf),
    #[error("{path} has {bytes} bytes: the size of a disk must be a multiple of 512, and not 0")]
    Size { path: PathBuf, bytes: u64 },
    #[error("{0} is served read-only")]
    ReadOnly(PathBuf),
    #[error(
        "{path} has {now} bytes, and cannot grow to {bytes}: the new size must be a multiple of 512, and a \
         disk does not become smaller"
    )]
    Smaller { path: PathBuf, now: u64, bytes: u64 },
    #[error("{0}: no process serves it, and a log may hold data that it lacks: use `seawall recover` first")]
    InLog(PathBuf),
    #[error("{0} is in use by another program (QEMU's image locks): stop that program first")]
    InUse(PathBuf),
    #[error("{0} cannot be in the log: {1}")]
    NotManaged(PathBuf, String),
    #[error("{0} is already served: `seawall status` names the process that serves it")]
    Served(PathBuf),
    #[error("{0} was replaced by another file meanwhile: end this process, and start it again")]
    Replaced(PathBuf),
    #[error("{0} stays in the log: the daemon's log says why. Its guest cannot go on elsewhere")]
    NotLetGo(PathBuf),
    #[error("{what}: {error}")]
    Failed { what: String, error: io::Error },
}

impl Refused {
    /// Something failed while `what` was done.
    pub fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Failed { what, error }
    }
}
