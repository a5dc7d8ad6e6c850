//! Why a log was not taken over, and the exit code that says so.

use std::io;
use std::path::PathBuf;

use seawall_core::pool::PoolError;
use seawall_keeper::holder::Holder;
use seawall_keeper::peer::PeerError;
use seawall_keeper::turn::TurnError;
use seawall_keeper::writer::WriteError;

use crate::kept::KeptError;

/// Why not. `Display` says what to do.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum TakeoverError {
    #[error("{0}")]
    TooFew(String),
    #[error(
        "{} took this log over at the same time, and now has it: {why}",
        .by.as_ref().map_or_else(|| "another writer".to_owned(), ToString::to_string)
    )]
    Taken { by: Option<Holder>, why: String },
    #[error("the data is not here, and nothing was changed:\n{}", .0.iter().map(|line| format!("  {line}\n")).collect::<String>())]
    NotHere(Vec<String>),
    #[error("{0}")]
    InUse(String),
    #[error(
        "this host now has the log, but the data is not up to date yet: {0}. Its guards stay up. Solve this \
         problem, then run `seawall takeover` again to go on with it"
    )]
    NotRecovered(String),
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("{0}")]
    Log(String),
    #[error(transparent)]
    Kept(KeptError),
}

impl TakeoverError {
    /// The exit code: these stay what they are.
    pub fn code(&self) -> u8 {
        match self {
            Self::File { .. } | Self::Log(_) | Self::Kept(_) => 1,
            Self::TooFew(_) => 3,
            Self::Taken { .. } => 4,
            Self::NotHere(_) => 5,
            Self::InUse(_) => 6,
            Self::NotRecovered(_) => 7,
        }
    }

    /// Processes of this host use the log.
    pub(super) fn users(pids: &[u32]) -> Self {
        Self::InUse(format!(
            "processes {pids:?} of this host still have this log in their memory, from before the takeover \
             or since then: end them first"
        ))
    }

    /// What kept the log from being opened. `holder` has it, as far as keepers say.
    pub(super) fn of_opening(error: KeptError, holder: Option<&Holder>) -> Self {
        let others = holder.filter(|holder| !holder.is(&Holder::here())).cloned();
        match error {
            // Its own promise was the newest one before: whoever took it away cut the connections, and may have come before
            // the reason.
            KeptError::Write(WriteError::TooFew { .. }) | KeptError::Keeper(_) if others.is_some() => {
                Self::Taken { by: others, why: error.to_string() }
            }
            KeptError::Turn(TurnError::Unknown { .. })
            | KeptError::Write(WriteError::TooFew { .. })
            | KeptError::Keeper(PeerError::Lost { .. }) => Self::TooFew(error.to_string()),
            KeptError::Turn(TurnError::Fenced(_))
            | KeptError::Write(WriteError::Fenced(_))
            | KeptError::TakenOver(_) => Self::Taken { by: others, why: error.to_string() },
            KeptError::Keeper(ref peer) if is_taken(peer) => {
                Self::Taken { by: others, why: error.to_string() }
            }
            KeptError::Pool(
                PoolError::InUse(_) | PoolError::Orphans { .. } | PoolError::DeviceFailed { .. },
            ) => Self::InUse(error.to_string()),
            error => Self::Kept(error),
        }
    }
}

fn is_taken(error: &PeerError) -> bool {
    error.is_fenced() || error.is_taken()
}
