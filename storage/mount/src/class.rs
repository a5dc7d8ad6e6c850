//! What a file is to the log: [`crate::settle`] decides it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use seawall_core::FileRef;
use seawall_core::policy::Manage;

use crate::log::Log;

/// What a node is to the log.
#[derive(Default)]
pub enum Class {
    /// Not asked yet.
    #[default]
    Unknown,
    /// The kernel's business alone, as long as names are what they were.
    Kernel {
        /// [`Nodes::names`](crate::node::Nodes::names) when this was decided.
        names: u64,
    },
    /// It may become managed.
    Candidate {
        /// When.
        manage: Manage,
        /// What is counted of it ([`seawall_core::client::Due`]).
        count: AtomicU8,
        /// It is due, and has no answer yet: its next change asks as well.
        is_open: bool,
        /// [`Nodes::names`](crate::node::Nodes::names) when this was decided.
        names: u64,
    },
    /// In the hands of the engine.
    Managed(Managed),
}

/// A managed file.
pub struct Managed {
    /// Its slot.
    pub file: FileRef,
    /// Our own descriptor, to sync it by.
    pub fd: OwnedFd,
}

impl Class {
    /// True if this need not be asked again before a write, with `names` as they are now.
    pub fn is_settled(&self, log: &Log, names: u64) -> bool {
        match self {
            Self::Unknown => false,
            Self::Kernel { names: then } => *then == names,
            // One that was refused before is asked for again at its next fsync.
            Self::Candidate { names: then, is_open, .. } => {
                *then == names && !(*is_open && log.daemon.may_ask())
            }
            Self::Managed(managed) => log.engine.knows(managed.file),
        }
    }

    /// True at the first sync of a file that any program may have.
    pub fn is_synced_first(&self) -> bool {
        matches!(self, Self::Candidate { manage: Manage::Again, count, .. } if count.load(Relaxed) == 1)
    }

    /// True of a file that any program may have, and that nobody has synced yet, as far as this mount knows.
    pub fn was_never_synced(&self) -> bool {
        matches!(self, Self::Candidate { manage: Manage::Again, count, .. } if count.load(Relaxed) == 0)
    }

    /// The managed file.
    pub fn managed(&self) -> Option<&Managed> {
        match self {
            Self::Managed(managed) => Some(managed),
            _ => None,
        }
    }
}

impl Managed {
    /// The descriptor to sync it by.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
