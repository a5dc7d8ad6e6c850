//! What the steps of every guard share: how they fail, and what makes them last.

use std::io;
use std::path::{Path, PathBuf};

use seawall_media::durable;

use super::text::Claim;

/// Why a guard could not be raised or lowered.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// A system call failed.
    #[error("guard: cannot {doing} {path}: {error}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// How it failed.
        error: io::Error,
    },
    /// The data belongs to another pool's log.
    #[error(
        "{at} says that this data belongs to the pool {pool}: use that pool, or recover it first \
         (`seawall recover --pool {pool}`). If that pool is lost for good, so are the commits in it: \
         restore a backup, or accept the loss with `seawall guard --lower DIRECTORY`"
    )]
    OtherPool {
        /// The guard.
        at: PathBuf,
        /// The other pool, as its guard names it.
        pool: String,
    },
    /// It stands aside for now: what it protects is to be asked for again later.
    #[error("guard: {at} stands aside for now")]
    Aside {
        /// The guard's place.
        at: PathBuf,
    },
    /// A process is in the middle of a call on a name that a guard takes, perhaps because it was stopped there.
    #[error(
        "guard: {at} stays as it is for now: process {pid} has been in the middle of a call on such a file for two seconds"
    )]
    Acting {
        /// The guard's place.
        at: PathBuf,
        /// The process.
        pid: u32,
    },
    /// Somebody wrote into the text that stands for a disk: QEMU, for a machine that was started from it.
    #[error(
        "guard: {at} stood for a disk, and a program has overwritten it; the disk is {at}.seawall. Remove \
         {at}, and the disk gets its name back; or, if {at} as it is now is the disk that you want, remove \
         {at}.seawall"
    )]
    WrittenOver {
        /// The guard.
        at: PathBuf,
    },
    /// The original is gone although the guard is up: somebody removed it.
    #[error("guard: {missing} is gone, and Seawall did not remove it: {remedy}")]
    Broken {
        /// The missing original.
        missing: PathBuf,
        /// What to do.
        remedy: &'static str,
    },
}

impl GuardError {
    /// True if the disk failed: what was to be made durable may never be, whatever the next sync says.
    pub(crate) fn is_of_the_disk(&self) -> bool {
        let is_eio = |error: &io::Error| error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error());
        matches!(self, Self::Io { error, .. } if is_eio(error))
    }

    /// The same with another path.
    pub(crate) fn at(mut self, real: impl FnOnce(&Path) -> PathBuf) -> Self {
        let (Self::Io { path, .. }
        | Self::OtherPool { at: path, .. }
        | Self::Aside { at: path }
        | Self::Acting { at: path, .. }
        | Self::WrittenOver { at: path }
        | Self::Broken { missing: path, .. }) = &mut self;
        *path = real(path);
        self
    }
}

/// An error if the guard at `at`, which says `found`, is another pool's than `claim`'s.
pub(super) fn refuse_other(at: &Path, found: &Claim, claim: Option<&Claim>) -> Result<(), GuardError> {
    match claim {
        Some(claim) if claim.uuid != found.uuid => {
            Err(GuardError::OtherPool { at: at.to_owned(), pool: found.pool.display().to_string() })
        }
        _ => Ok(()),
    }
}

pub(super) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(crate) fn fault(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> GuardError {
    let path = path.to_owned();
    move |error| GuardError::Io { doing, path, error }
}

pub(crate) fn sync_directory(dir: &Path) -> Result<(), GuardError> {
    durable::sync_directory(dir).map_err(fault("sync", dir))
}

/// Removes a file that may be absent.
pub(super) fn remove(path: &Path) -> Result<(), GuardError> {
    durable::remove(path).map(drop).map_err(fault("remove", path))
}
