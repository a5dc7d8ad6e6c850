//! Why a disk is not served.

use std::io;
use std::path::PathBuf;

/// What is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum Refused {
    #[error("{0} is not a regular file: an image is one")]
    NoFile(PathBuf),
    #[error(
        "{0}: an image of Seawall's is called *.img or *.raw, so that its guard is known by its name: rename it"
    )]
    Name(PathBuf),
    #[error(
        "{0} is in the format qcow2. A disk of Seawall's is raw: `qemu-img convert -O raw {0} NEW.img` makes one"
    )]
    Qcow2(PathBuf),
    #[error("{path} has {bytes} bytes: a disk is a multiple of 512, and not empty")]
    Size { path: PathBuf, bytes: u64 },
    #[error("{0} is served read-only")]
    ReadOnly(PathBuf),
    #[error(
        "{path} has {now} bytes, and {bytes} are not a larger disk: that is a multiple of 512, and a disk does not become smaller"
    )]
    Smaller { path: PathBuf, now: u64, bytes: u64 },
    #[error("{0}: nobody serves it, and a log may hold what it has not: `seawall recover` first")]
    InLog(PathBuf),
    #[error("{0} is in use by another program (QEMU's image locks): stop that first")]
    InUse(PathBuf),
    #[error("{0} cannot be in the log: {1}")]
    NotManaged(PathBuf, String),
    #[error("{0} is served already: `seawall status` names who serves it")]
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
