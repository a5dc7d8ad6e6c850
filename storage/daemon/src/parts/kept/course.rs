//! With the keepers, or without enough of them: where a host is on its way there and back.
//!
//! ```text
//!            too few, and files and marks are on the disk        a new turn, with a log that holds nothing
//!  together ─────────────────────────────────────────────▶ alone ─────────────────────────────────────────▶ returning
//!     ▲                                                                                                        │
//!     └──────────────────────────── enough have a copy of that turn, and nothing was acknowledged without it ──┘
//! ```
//!
//! A copy of a turn in which this host went on alone is older than its files, which the marks in their directories say. In a
//! new turn no file is in the log before enough have copies; so none of these, however old, has anything for a file.

use rustix::io::Errno;
use seawall_keeper::turn::Begun;

/// What ends a batch that was under way when the course changed: it is to be made anew.
pub(super) const ANEW: Errno = Errno::AGAIN;

/// Where it is.
pub(crate) enum Course {
    /// What enough keepers have counts.
    Together,
    /// Nothing counts but the disk.
    Alone {
        /// A turn that has begun, and that the log does not know of yet.
        begun: Option<Box<Begun>>,
    },
    /// The same, and keepers are brought up to date in a new turn.
    Returning,
}

impl Course {
    /// From now on.
    pub fn alone() -> Self {
        Self::Alone { begun: None }
    }

    /// True if only the disk counts.
    pub fn is_alone(&self) -> bool {
        !matches!(self, Self::Together)
    }

    /// True if keepers may have copies of the log's turn.
    pub fn is_in_turn(&self) -> bool {
        !matches!(self, Self::Alone { .. })
    }
}

/// What is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing, with keepers.
    Nothing,
    /// It is time to go on without them.
    GoAlone,
    /// A new turn, once enough are reached.
    Begin,
    /// Nothing, while keepers are brought up to date.
    Wait,
}
