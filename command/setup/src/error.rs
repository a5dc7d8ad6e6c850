//! Why something was not done.

use std::io;
use std::path::{Path, PathBuf};

/// One reason. Its text is the message.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something does not allow it: it holds data, is in use, is missing. Nothing was changed.
    #[error("{0}")]
    Refused(String),
    /// A step failed. Those before it were done.
    #[error("{step}: {why}")]
    Step {
        /// What was to be done.
        step: String,
        /// What went wrong.
        why: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        why: io::Error,
    },
}

impl Error {
    /// A refusal.
    pub fn refused(why: impl Into<String>) -> Self {
        Self::Refused(why.into())
    }

    /// An error of this file.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |why| Self::File { path, why }
    }
}
