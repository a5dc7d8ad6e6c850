//! Why a repository cannot be used, and what to do.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// What went wrong.
#[derive(Debug)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum RepositoryError {
    Missing(PathBuf),
    Directory(PathBuf, io::Error),
    Foreign(PathBuf),
    Version { path: PathBuf, found: i64, wanted: i64 },
    Damaged(PathBuf, String),
    Full(PathBuf),
    Sqlite(PathBuf, String),
    NoSnapshot { path: PathBuf, name: String, have: Option<(i64, i64)> },
    NoBaseline { path: PathBuf, name: String, have: Vec<String> },
    Import { line: usize, why: String },
}

impl std::fmt::Display for RepositoryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(path) => {
                write!(
                    f,
                    "there is no repository {}: `seawall snap` makes one; --repo names another",
                    path.display()
                )
            }
            Self::Directory(path, e) => {
                write!(f, "making {} for the repository: {e}; --repo names another place", path.display())
            }
            Self::Foreign(path) => {
                write!(f, "{} is no repository of snapshots; --repo names another file", path.display())
            }
            Self::Version { path, found, wanted } => write!(
                f,
                "the repository {} has version {found}, this program reads {wanted}: export it with the seawall that \
                 wrote it (`seawall snaps export`), import that into a new one, or name another with --repo",
                path.display()
            ),
            Self::Damaged(path, why) => write!(
                f,
                "the repository {} is damaged ({why}): move it away and start a new one, or bring back a copy; what is \
                 readable can be had with `sqlite3 {} .recover`",
                path.display(),
                path.display()
            ),
            Self::Full(path) => {
                write!(
                    f,
                    "no space for the repository {}: `seawall snaps prune` drops old snapshots",
                    path.display()
                )
            }
            Self::Sqlite(path, why) => write!(f, "the repository {}: {why}", path.display()),
            Self::NoSnapshot { path, name, have: Some((first, last)) } => {
                write!(
                    f,
                    "no snapshot {name} in {}: there are {first} to {last} (`seawall snaps`)",
                    path.display()
                )
            }
            Self::NoSnapshot { path, name, have: None } => {
                write!(f, "no snapshot {name}: {} is empty; take some with `seawall snap`", path.display())
            }
            Self::NoBaseline { path, name, have } if have.is_empty() => {
                write!(
                    f,
                    "no baseline {name:?}: {} has none (`seawall snaps baseline NAME A B`)",
                    path.display()
                )
            }
            Self::NoBaseline { path, name, have } => {
                write!(f, "no baseline {name:?} in {}: there are {}", path.display(), have.join(", "))
            }
            Self::Import { line, why } => write!(f, "line {line}: {why}; nothing was imported"),
        }
    }
}

impl std::error::Error for RepositoryError {}

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
