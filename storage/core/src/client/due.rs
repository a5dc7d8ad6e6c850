//! Whether to ask the daemon for a file that its preset may want.
//!
//! A front remembers one number for each candidate. Depending on the preset, it counts either the fsyncs before the
//! first question, or the questions that were refused.

use crate::policy::{ASK_AGAIN, Manage};

/// The first sync of a file proves nothing: it may be its last.
const SYNCED_AGAIN: u8 = 2;

/// What a file is about to be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A change.
    Change,
    /// An fsync.
    Sync,
    /// Opening the file for writes each of which is a sync.
    SyncedWrites,
}

/// Whether to ask the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Ask it now.
    pub is_now: bool,
    /// What the front remembers if the file stays a candidate.
    pub count: u8,
}

impl Manage {
    /// Decides, for a file with this count, whether to ask the daemon for it.
    pub fn due(self, at: Use, count: u8, is_sqlite: impl FnOnce() -> bool) -> Due {
        let counted = if at == Use::Sync { count.saturating_add(1).min(ASK_AGAIN) } else { count };
        match self {
            Self::Bypass => Due { is_now: false, count },
            // For a file that was refused before, only a sync counts and asks again: by then there may be room.
            Self::Now => Due { is_now: counted < ASK_AGAIN, count: counted },
            // Not under this name. It may be under its next one, and is counted from then on.
            Self::AfterSyncs(n) if n >= ASK_AGAIN => Due { is_now: false, count },
            Self::AfterSyncs(n) => Due { is_now: (n..ASK_AGAIN).contains(&counted), count: counted },
            Self::IfSqlite if at == Use::Sync && counted < ASK_AGAIN && is_sqlite() => {
                Due { is_now: true, count: counted }
            }
            Self::IfSqlite => Due { is_now: false, count },
            Self::Again => {
                let syncs = if at == Use::SyncedWrites { 0 } else { SYNCED_AGAIN };
                Due { is_now: (syncs..ASK_AGAIN).contains(&counted), count: counted }
            }
        }
    }

    /// What is remembered of a candidate that nobody has open any more: a file that was refused is asked for again.
    pub fn reopened(self, count: u8) -> u8 {
        if self == Self::Again { count.min(SYNCED_AGAIN - 1) } else { 0 }
    }
}
