//! Why a repository cannot be used, and what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum RepositoryError {
    #[error("there is no repository {0}: `seawall snap` makes one; --repo names another")]
    Missing(PathBuf),
    #[error("cannot make {0} for the repository: {1}; --repo names another place")]
    Directory(PathBuf, io::Error),
    #[error("{0} is not a repository of snapshots; --repo names another file")]
    Foreign(PathBuf),
    #[error(
        "the repository {path} has version {found}, and this program reads {wanted}: export it with the \
         seawall that wrote it (`seawall snaps export`), import that into a new one, or name another with \
         --repo"
    )]
    Version { path: PathBuf, found: i64, wanted: i64 },
    #[error(
        "the repository {0} is damaged ({1}): move it away and start a new one, or bring back a copy; \
         `sqlite3 {0} .recover` saves what is readable"
    )]
    Damaged(PathBuf, String),
    #[error("no space for the repository {0}: `seawall snaps prune` drops old snapshots")]
    Full(PathBuf),
    #[error("the repository {0}: {1}")]
    Sqlite(PathBuf, String),
    #[error(fmt = no_snapshot)]
    NoSnapshot { path: PathBuf, name: String, have: Option<(i64, i64)> },
    #[error(fmt = no_baseline)]
    NoBaseline { path: PathBuf, name: String, have: Vec<String> },
    #[error("line {line}: {why}; nothing was imported")]
    Import { line: usize, why: String },
}

fn no_snapshot(
    path: &Path,
    name: &str,
    have: &Option<(i64, i64)>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let path = path.display();
    match have {
        Some((first, last)) => {
            write!(f, "no snapshot {name} in {path}: there are {first} to {last} (`seawall snaps`)")
        }
        None => write!(f, "no snapshot {name}: {path} is empty; take some with `seawall snap`"),
    }
}

fn no_baseline(path: &Path, name: &str, have: &[String], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let path = path.display();
    match have {
        [] => write!(f, "no baseline {name:?}: {path} has none (`seawall snaps baseline NAME A B`)"),
        have => write!(f, "no baseline {name:?} in {path}: there are {}", have.join(", ")),
    }
}

impl RepositoryError {
    pub(super) fn of(path: &Path, error: &rusqlite::Error) -> Self {
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::Foreign(path.into()),
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged(path.into(), text),
            Some(ErrorCode::DiskFull) => Self::Full(path.into()),
            _ => Self::Sqlite(path.into(), text),
        }
    }
}

/// An error before it knows where.
#[derive(Debug)]
pub enum Raw {
    Sqlite(rusqlite::Error),
    Json(serde_json::Error),
    Ours(RepositoryError),
}

impl Raw {
    pub fn at(self, path: &Path) -> RepositoryError {
        match self {
            Self::Sqlite(e) => RepositoryError::of(path, &e),
            Self::Json(e) => RepositoryError::Damaged(path.into(), e.to_string()),
            Self::Ours(e) => e,
        }
    }
}

impl From<rusqlite::Error> for Raw {
    fn from(e: rusqlite::Error) -> Self {
        Self::Sqlite(e)
    }
}

impl From<serde_json::Error> for Raw {
    fn from(e: serde_json::Error) -> Self {
        Self::Json(e)
    }
}

impl From<RepositoryError> for Raw {
    fn from(e: RepositoryError) -> Self {
        Self::Ours(e)
    }
}
