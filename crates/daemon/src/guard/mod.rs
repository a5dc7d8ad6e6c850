//! Guards (promise P5): while the log may hold records the files lack, the *bare* database must not start.
//!
//! Input: a preset and the path the guard belongs to. Output: the guard is up, or down, durably.
//! Every step is atomic and fsynced, and every state a crash can leave is recognised and finished by either
//! [`raise`] or [`lower`]; both may be repeated at will.
//!
//! | preset | what | where |
//! |---|---|---|
//! | postgres | `PG_VERSION` is replaced by a text PostgreSQL refuses by its first word | [`postgres`] |
//! | sqlite | a directory where a database's rollback journal would be | [`sqlite`] |
//!
//! A guard names the pool it was raised for. A guard of another pool is never touched: its records are in
//! that pool.
//!
//! Not handled here: when to raise and lower (`crate::roots`), and how the preload looks behind a guard.

pub mod postgres;
pub mod sqlite;
mod text;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use seawall_wire::shm::Preset;
pub use text::{Claim, FIRST_WORD};

/// Why a guard could not be raised or lowered.
#[derive(Debug)]
pub enum GuardError {
    /// A system call failed.
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// How it failed.
        error: io::Error,
    },
    /// The data belongs to another pool's log.
    OtherPool {
        /// The guard.
        at: PathBuf,
        /// The other pool, as its guard names it.
        pool: String,
    },
    /// The original is gone although the guard is up: somebody removed it.
    Broken {
        /// The missing original.
        missing: PathBuf,
        /// What to do.
        remedy: &'static str,
    },
}

impl std::fmt::Display for GuardError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io { doing, path, error } => write!(f, "guard: {doing} {}: {error}", path.display()),
            Self::OtherPool { at, pool } => write!(
                f,
                "{} says that this data belongs to the pool {pool}: use that pool, or recover it first \
                 (`seawall recover --pool {pool}`). If that pool is lost for good, so are the commits in it: \
                 restore a backup, or accept the loss with `seawall recover --abandon DIRECTORY`",
                at.display()
            ),
            Self::Broken { missing, remedy } => {
                write!(f, "guard: {} is gone, somebody removed it: {remedy}", missing.display())
            }
        }
    }
}

impl std::error::Error for GuardError {}

/// Raises the guard that belongs to `at`: a PGDATA, or an SQLite database file.
///
/// # Errors
/// [`GuardError`]; then no file below may be managed.
pub fn raise(preset: Preset, at: &Path, claim: &Claim) -> Result<(), GuardError> {
    match preset {
        Preset::Postgres => postgres::raise(at, claim),
        Preset::Sqlite => sqlite::raise(at, claim),
    }
}

/// Lowers the guard that belongs to `at`, whatever state it is in. `claim` `None`: whoever raised it.
///
/// # Errors
/// [`GuardError`].
pub fn lower(preset: Preset, at: &Path, claim: Option<&Claim>) -> Result<(), GuardError> {
    match preset {
        Preset::Postgres => postgres::lower(at, claim),
        Preset::Sqlite => sqlite::lower(at, claim),
    }
}

/// Every place below the data directory that has a guard, up or half-way.
pub fn find(preset: Preset, data: &Path) -> Vec<PathBuf> {
    match preset {
        Preset::Postgres => vec![data.to_owned()],
        Preset::Sqlite => sqlite::find(data),
    }
}

fn fault(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> GuardError {
    let path = path.to_owned();
    move |error| GuardError::Io { doing, path, error }
}

fn sync_directory(dir: &Path) -> Result<(), GuardError> {
    File::open(dir).and_then(|d| d.sync_all()).map_err(fault("syncing", dir))
}

/// Removes a file that may be absent.
fn remove(path: &Path) -> Result<(), GuardError> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(fault("removing", path)(e)),
        _ => Ok(()),
    }
}

/// `name` with `suffix` behind it, in the same directory.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
