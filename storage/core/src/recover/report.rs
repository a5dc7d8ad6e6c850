//! What a recovery is asked to do, and what it answers.

use std::fmt::Display;
use std::path::PathBuf;

use serde::Serialize;

use super::scan::Damage;
use super::unresolved::Unresolved;
use crate::pool::Pool;
use crate::table::TableError;

/// How to recover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Replay if the machine went down since the log was used; otherwise only sync.
    Auto,
    /// Replay in any case: for file systems that lost their cache without a reboot, and for tests.
    Replay,
}

/// What an operator allows.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether to replay.
    pub mode: Mode,
    /// Give up the records of files that are gone or were changed by others, instead of refusing.
    pub accept_loss: bool,
}

impl Options {
    /// True if records are written to files; otherwise the machine has not gone down, and syncing the files is enough.
    pub(super) fn replays(self, pool: &Pool) -> bool {
        self.mode == Mode::Replay || !pool.is_same_boot()
    }
}

/// What was done.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// True if records were replayed, false if the files only had to be synced.
    pub replayed: bool,
    /// Records found, live or not.
    pub records: u64,
    /// Records that were replayed.
    pub live: u64,
    /// Bytes written into files.
    pub bytes: u64,
    /// Files that had live records.
    #[serde(serialize_with = "crate::path_text::list::serialize")]
    pub files: Vec<PathBuf>,
    /// Writes whose record was cut by the crash: they had not been acknowledged.
    pub torn: u64,
    /// Records that the operator allowed to be given up, with the file they belong to.
    pub given_up: Vec<String>,
    /// Records that nobody needs, with their file: its database removed it, and will never read it again.
    pub dropped: Vec<String>,
    /// The highest LSN seen.
    pub last_lsn: u64,
}

/// Why nothing was recovered. Nothing was written unless the text says so.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum RecoverError {
    #[error(transparent)]
    Table(TableError),
    #[error(
        "the log is damaged; nothing was replayed:\n{}Restore the pool if it is a copy; else restore the database \
         from a backup",
        lines(.0)
    )]
    Damaged(Vec<Damage>),
    #[error(
        "{segments} segments of the log are in the spill area {path}, which cannot be read: {why}. Nothing was \
         replayed, and the log is kept: bring the area back to that place and recover again. If it is lost for \
         good, so are the commits in it: restore the database from a backup"
    )]
    Area { path: PathBuf, why: String, segments: u32 },
    #[error(
        "the log holds writes that cannot be put where they belong; nothing was replayed:\n{}Put the files back, or \
         give these writes up with `seawall recover --accept-loss`",
        lines(.0)
    )]
    Unresolved(Vec<Unresolved>),
    #[error(
        "cannot {doing} {file}: {error}. The log is kept: solve this problem, then run `seawall recover` \
         again"
    )]
    Io { file: PathBuf, doing: &'static str, error: std::io::Error },
}

/// Each on a line of its own.
fn lines(all: &[impl Display]) -> String {
    all.iter().map(|one| format!("  {one}\n")).collect()
}

impl From<TableError> for RecoverError {
    fn from(e: TableError) -> Self {
        Self::Table(e)
    }
}
