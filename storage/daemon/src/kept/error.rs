//! What can be wrong with a log that keepers keep.

use std::io;
use std::path::PathBuf;

use seawall_core::pool::PoolError;
use seawall_keeper::peer::PeerError;
use seawall_keeper::turn::TurnError;
use seawall_keeper::writer::WriteError;

/// Why a log that keepers keep was not made or opened.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum KeptError {
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("{0}. Every keeper of a new log must be reached when the log is made")]
    Making(PeerError),
    #[error("{0}")]
    Keeper(#[from] PeerError),
    #[error("{0}")]
    Turn(#[from] TurnError),
    #[error("{0}")]
    Write(#[from] WriteError),
    #[error(
        "{0}. This host's copy of the log is no longer used, and nothing was replayed. Leave the database \
         where it is now; to have it here again, stop it there, and use `seawall takeover`"
    )]
    TakenOver(WriteError),
    #[error(
        "a takeover of this log was interrupted on this host: run `seawall takeover` again to go on with it"
    )]
    CutShort,
    #[error("keeper {0} is named twice: each copy must lie on a host of its own")]
    Twice(String),
    #[error("{acks} of {keepers} keepers cannot confirm: choose 1 to {keepers} (--acks)")]
    Acks { acks: usize, keepers: usize },
    #[error("every keeper is a witness, and none has data: start one without --witness")]
    NoData,
    #[error(
        "{} already exists, and {}: only a new log can be given keepers", path.display(),
        if there.is_empty() { "is not a log that keepers keep".to_owned() }
        else { format!("is kept by {there}") }
    )]
    Others { path: PathBuf, there: String },
}
