//! Why a daemon did not start, or what it could not do. `Display` says what to do about it.

use std::path::PathBuf;

use seawall_core::pool::PoolError;
use seawall_core::recover::RecoverError;
use seawall_core::table::TableError;
use seawall_core::takeover::StartError;

use crate::cache::CacheError;
use crate::guard::GuardError;
use crate::kept::KeptError;

/// An error of the daemon.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum DaemonError {
    #[error(transparent)]
    Pool(PoolError),
    #[error(transparent)]
    Kept(KeptError),
    #[error(transparent)]
    Recover(RecoverError),
    #[error(transparent)]
    Start(StartError),
    #[error(transparent)]
    Table(TableError),
    #[error(transparent)]
    Guard(GuardError),
    #[error(transparent)]
    Cache(CacheError),
    #[error(
        "there is no run-time directory for the pool {pool}: {error}. It must belong to the pool's owner, \
         and this command must run as that user (`--user`)"
    )]
    Place { pool: PathBuf, error: std::io::Error },
    #[error("cannot listen at {socket}: {error}")]
    Listen { socket: PathBuf, error: std::io::Error },
    #[error("every client slot is taken: too many processes use this pool")]
    NoClientSlot,
    #[error("the limit of {what} is {has}, and the daemon needs {needs}: raise it, and start again")]
    Limit { what: &'static str, has: u64, needs: u64 },
    #[error(
        "cannot start a thread of the daemon: {0}. The limit of processes (ulimit -u, the container's pids) \
         or of memory is too low"
    )]
    Thread(std::io::Error),
    #[error("{path}: {why}")]
    Directory { path: PathBuf, why: String },
    #[error("processes {pids:?} still use the log: stop the database first")]
    Alive { pids: Vec<u32> },
    #[error(
        "the log can no longer be written, because another host has it or too few keepers are left (see \
         `seawall status`): the guards stay up, because they may be that host's"
    )]
    TakenOver,
    #[error(
        "the disk refused to write these files: {}. Their records stay in the log and the guards stay up; \
         see the kernel's log for the disk's error",
        .files.join(", ")
    )]
    Undrained { files: Vec<String> },
}

macro_rules! from {
    ($($error:ident => $variant:ident),*) => {$(
        impl From<$error> for DaemonError {
            fn from(e: $error) -> Self {
                Self::$variant(e)
            }
        }
    )*};
}
impl From<KeptError> for DaemonError {
    fn from(e: KeptError) -> Self {
        match e {
            // As of any other pool.
            KeptError::Pool(e) => Self::Pool(e),
            e => Self::Kept(e),
        }
    }
}
from!(PoolError => Pool, RecoverError => Recover, StartError => Start, TableError => Table, GuardError => Guard,
    CacheError => Cache);
