//! Why a daemon did not start, or what it could not do. `Display` says what to do about it.

use std::path::PathBuf;

use seawall_core::pool::PoolError;
use seawall_core::recover::RecoverError;
use seawall_core::table::TableError;
use seawall_core::takeover::StartError;

use crate::cache::CacheError;
use crate::guard::GuardError;

/// An error of the daemon.
#[derive(Debug)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum DaemonError {
    Pool(PoolError),
    Recover(RecoverError),
    Start(StartError),
    Table(TableError),
    Guard(GuardError),
    Cache(CacheError),
    Place { pool: PathBuf, error: std::io::Error },
    Listen { socket: PathBuf, error: std::io::Error },
    NoClientSlot,
    Limit { what: &'static str, has: u64, needs: u64 },
    Thread(std::io::Error),
    Directory { path: PathBuf, why: String },
    Alive { pids: Vec<u32> },
    Undrained { files: Vec<String> },
}

impl std::fmt::Display for DaemonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pool(e) => e.fmt(f),
            Self::Recover(e) => e.fmt(f),
            Self::Start(e) => e.fmt(f),
            Self::Table(e) => e.fmt(f),
            Self::Guard(e) => e.fmt(f),
            Self::Cache(e) => e.fmt(f),
            Self::Place { pool, error } => write!(
                f,
                "no run-time directory for the pool {}: {error}. It must belong to the pool's owner, who must \
                 be the one to run this (`--user`)",
                pool.display()
            ),
            Self::Listen { socket, error } => write!(f, "listening at {}: {error}", socket.display()),
            Self::Limit { what, has, needs } => {
                write!(
                    f,
                    "the limit of {what} is {has}, and the daemon needs {needs}: raise it, and start again"
                )
            }
            Self::Thread(error) => write!(
                f,
                "a thread of the daemon cannot be started: {error}. The limits of processes (ulimit -u, the container's \
                 pids) or of memory are too small"
            ),
            Self::NoClientSlot => f.write_str("every client slot is taken: too many processes use this pool"),
            Self::Directory { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Alive { pids } => {
                write!(f, "processes {pids:?} still use the log: stop the database first")
            }
            Self::Undrained { files } => write!(
                f,
                "the disk refused to take: {}. Their records stay in the log and the guards stay up; see the \
                 kernel's log for the disk's error",
                files.join(", ")
            ),
        }
    }
}

impl std::error::Error for DaemonError {}

macro_rules! from {
    ($($error:ident => $variant:ident),*) => {$(
        impl From<$error> for DaemonError {
            fn from(e: $error) -> Self {
                Self::$variant(e)
            }
        }
    )*};
}
from!(PoolError => Pool, RecoverError => Recover, StartError => Start, TableError => Table, GuardError => Guard,
    CacheError => Cache);
