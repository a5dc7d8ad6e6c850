//! Why a database refused an operation, as far as a load has to tell them apart.

use std::fmt;

/// An operation did not happen, or nobody can say whether it did.
#[derive(Debug)]
pub enum Failure {
    /// The server is gone, or told us to go: what a kill looks like from outside. Whether an operation under
    /// way was committed is unknown.
    Lost(String),
    /// The database undid the operation because of another one (deadlock, lock timeout): it may be tried again.
    Conflict(String),
    /// Anything else: the load ends.
    Other(anyhow::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Lost(said) => write!(f, "connection lost: {said}"),
            Failure::Conflict(said) => write!(f, "undone because of a conflict: {said}"),
            Failure::Other(error) => write!(f, "{error:#}"),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure::Other(error)
    }
}

impl From<postgres::Error> for Failure {
    fn from(error: postgres::Error) -> Self {
        let Some(said) = error.as_db_error() else { return Failure::Lost(error.to_string()) };
        match said.code().code() {
            // Serialisation failure, deadlock, lock not available.
            "40001" | "40P01" | "55P03" => Failure::Conflict(said.to_string()),
            // Class 57P: shut down, crashed, not yet started.
            code if code.starts_with("57P") => Failure::Lost(said.to_string()),
            _ => Failure::Other(anyhow::anyhow!("{said}")),
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
        match error.sqlite_error_code() {
            Some(DatabaseBusy | DatabaseLocked) => Failure::Conflict(error.to_string()),
            _ => Failure::Other(error.into()),
        }
    }
}
