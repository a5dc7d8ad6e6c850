//! What each answer means. Every match here is exhaustive: a new [`Status`] must be given its meaning.

use rustix::io::Errno;
use seawall_wire::message::{MAGIC, Reply, Status};

use crate::FileRef;

/// The status of an answer. An answer of another protocol version has no other meaning than that.
pub(super) fn status(reply: &Reply) -> Status {
    if reply.magic == MAGIC { Status::from_u32(reply.status) } else { Status::BadVersion }
}

/// The outcome of a request to manage a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    /// The file is managed.
    File(FileRef),
    /// The file must not be managed, because of its kind or its place.
    Bypass,
    /// Not now: its database is frozen, or the daemon is stopped and its watchdog answered.
    Later,
    /// Not now, and the file must not be changed either: a copy is being taken.
    Suspended,
    /// The file cannot be managed: the daemon's log says why.
    Refused,
    /// The daemon does not serve this process, or cannot make sense of it.
    Unserved,
    /// There was no answer.
    NoAnswer,
}

impl Registered {
    /// Reads the answer.
    pub(super) fn of(reply: &Reply) -> Self {
        match status(reply) {
            Status::Ok => Self::File(FileRef { slot: reply.slot, generation: reply.generation }),
            Status::Bypass => Self::Bypass,
            Status::Later => Self::Later,
            Status::Suspended => Self::Suspended,
            Status::Refused => Self::Refused,
            Status::BadVersion | Status::Denied | Status::BadRequest | Status::Failed | Status::Full => {
                Self::Unserved
            }
        }
    }

    /// A file whose slot belongs to another file by now counts as refused.
    pub(super) fn if_known(self, is_known: impl FnOnce(FileRef) -> bool) -> Self {
        match self {
            Self::File(file) if !is_known(file) => Self::Refused,
            answer => answer,
        }
    }

    /// What the front does. If a front asks, the preset wants the file; `is_atomic`: no page of it may tear.
    pub fn course(self, is_atomic: bool) -> Course {
        match self {
            Self::File(file) => Course::Log(file),
            // Its preset says that it must be managed: the daemon's refusal is not taken as final.
            Self::Bypass if is_atomic => Course::AskAgain,
            Self::Bypass => Course::Leave,
            Self::Refused | Self::Unserved => Course::AskAgain,
            Self::Later | Self::Suspended => Course::AskNext,
            Self::NoAnswer => Course::Unanswered,
        }
    }

    /// The message about a file whose pages must not tear.
    pub fn torn(self) -> Option<&'static str> {
        match self {
            Self::File(_) => None,
            Self::Refused => {
                Some("a data file is not in the log, so its pages can tear; the daemon's log says why")
            }
            Self::Bypass => Some(
                "a data file is not in the log, so its pages can tear: the daemon does not consider it a \
                 data file",
            ),
            Self::Later => Some(
                "a data file is not in the log yet, so its pages can tear: the daemon is stopped, or cannot take \
                 it now",
            ),
            Self::Suspended => Some(
                "a data file is not in the log yet, so its pages can tear: its database has been frozen for \
                 longer than a change can wait",
            ),
            Self::Unserved => Some(
                "a data file is not in the log, so its pages can tear: the daemon that answers does not serve \
                 this process",
            ),
            Self::NoAnswer => Some("a data file is not in the log, so its pages can tear: no daemon answers"),
        }
    }
}

/// What a front does with a file that it has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Every change goes through the log.
    Log(FileRef),
    /// The file is left to the kernel, as long as its name and its descriptor stay the same.
    Leave,
    /// The file is left to the kernel now. Its next fsyncs ask again, [`ASK_AGAIN`](crate::policy::ASK_AGAIN) times in
    /// all.
    AskAgain,
    /// The file is left to the kernel now, and that is not remembered: its next change or sync asks again.
    AskNext,
    /// The same, because nobody answered. Another thread may get an answer while this change is under way.
    Unanswered,
}

impl Course {
    /// True if the front does not ask again for this directory: its names cannot be in the log. A daemon that is
    /// frozen, is stopped or is away decides nothing about that.
    pub fn refuses_directory(self) -> bool {
        match self {
            Self::Leave | Self::AskAgain => true,
            Self::Log(_) | Self::AskNext | Self::Unanswered => false,
        }
    }
}

/// The outcome of a request to serve a file from the block cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// The cache serves it, in this slot, for this tenant of the slot.
    File {
        /// The slot.
        slot: u32,
        /// Which of its tenants.
        tenant: u16,
    },
    /// The cache must not serve it.
    Never,
    /// The cache cannot serve it now.
    NotNow,
}

impl Entered {
    /// Reads the answer.
    pub(super) fn of(reply: &Reply) -> Self {
        match status(reply) {
            Status::Ok => Self::File { slot: reply.slot, tenant: reply.generation as u16 },
            Status::Refused | Status::Later | Status::Suspended => Self::NotNow,
            // It costs speed alone.
            Status::Bypass
            | Status::BadVersion
            | Status::Denied
            | Status::BadRequest
            | Status::Failed
            | Status::Full => Self::Never,
        }
    }
}

/// The outcome of a real sync by the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synced {
    /// The file is on the disk.
    Done,
    /// The disk refused it.
    Failed,
    /// The daemon did not try.
    Not,
}

impl Synced {
    /// Reads the answer.
    pub(super) fn of(reply: &Reply) -> Self {
        match status(reply) {
            Status::Ok => Self::Done,
            Status::Failed => Self::Failed,
            Status::BadVersion
            | Status::Denied
            | Status::Bypass
            | Status::Refused
            | Status::BadRequest
            | Status::Full
            | Status::Later
            | Status::Suspended => Self::Not,
        }
    }
}

/// True if the daemon did what it was asked. If it did not, nothing is retried.
pub(super) fn is_done(reply: &Reply) -> bool {
    status(reply) == Status::Ok
}

/// True if the daemon now knows that this process does not use the log. A daemon that refuses to serve it never assumed
/// otherwise.
pub(super) fn is_heard(reply: &Reply) -> bool {
    match status(reply) {
        Status::Ok | Status::BadVersion | Status::Denied => true,
        Status::Bypass
        | Status::Refused
        | Status::BadRequest
        | Status::Failed
        | Status::Full
        | Status::Later
        | Status::Suspended => false,
    }
}

/// Whether the log is durable.
pub(super) fn hardened(reply: &Reply) -> Result<(), Errno> {
    match status(reply) {
        Status::Ok => Ok(()),
        Status::Full => Err(Errno::NOSPC),
        Status::BadVersion
        | Status::Denied
        | Status::Bypass
        | Status::Refused
        | Status::BadRequest
        | Status::Failed
        | Status::Later
        | Status::Suspended => Err(Errno::IO),
    }
}

/// Tells the daemon's answer to a ping from its watchdog's, which says that the daemon is stopped.
pub(super) fn stands(reply: &Reply) -> Result<(), Errno> {
    match status(reply) {
        Status::Refused => Err(Errno::AGAIN),
        Status::Ok
        | Status::BadVersion
        | Status::Denied
        | Status::Bypass
        | Status::BadRequest
        | Status::Failed
        | Status::Full
        | Status::Later
        | Status::Suspended => Ok(()),
    }
}
