//! Why a backend does not answer.

use std::io;

/// Why there is no answer.
#[derive(Debug)]
pub enum Trouble {
    /// The backend is gone. Requests without an answer are kept.
    Gone,
    /// It said so: this status.
    Status(u8),
    /// Nothing came for a minute.
    Silent,
    /// Something else.
    Other(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Trouble {}

pub(crate) fn other(error: impl std::fmt::Display) -> Trouble {
    Trouble::Other(error.to_string())
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        other(error)
    }
}
