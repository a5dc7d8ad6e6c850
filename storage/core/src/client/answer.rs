//! What each answer means. Every match here is exhaustive: a new [`Status`] must be given its meaning.

use rustix::io::Errno;
use seawall_wire::message::{MAGIC, Reply, Status};

use crate::FileRef;

/// What an answer says. One of another version says nothing else than that.
pub(super) fn status(reply: &Reply) -> Status {
    if reply.magic == MAGIC { Status::from_u32(reply.status) } else { Status::BadVersion }
}

/// What became of a file that was to be managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    /// It is.
    File(FileRef),
    /// It is not to be, for what it is or where it lies.
    Bypass,
    /// Not now: its database is frozen, or the daemon stands still and its watchdog says so.
    Later,
    /// Not now, and it is not to be changed either: a copy is taken.
    Suspended,
    /// It cannot be: the daemon's log says why.
    Refused,
    /// The daemon does not serve this process, or makes no sense of it.
    Unserved,
    /// There was no answer.
    NoAnswer,
}

impl Registered {
    /// By the answer.
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

    /// A file whose slot is another one's by now is as good as refused.
    pub(super) fn if_known(self, is_known: impl FnOnce(FileRef) -> bool) -> Self {
        match self {
            Self::File(file) if !is_known(file) => Self::Refused,
            answer => answer,
        }
    }

    /// What the front does. By a front that asks, the preset wants the file; `is_atomic`: no page of it may tear.
    pub fn course(self, is_atomic: bool) -> Course {
        match self {
            Self::File(file) => Course::Log(file),
            // Its preset says that it must be: the daemon is not believed for good.
            Self::Bypass if is_atomic => Course::AskAgain,
            Self::Bypass => Course::Leave,
            Self::Refused | Self::Unserved => Course::AskAgain,
            Self::Later | Self::Suspended => Course::AskNext,
            Self::NoAnswer => Course::Unanswered,
        }
    }

    /// What is to be said of a file whose pages must not tear.
    pub fn torn(self) -> Option<&'static str> {
        match self {
            Self::File(_) => None,
            Self::Refused => {
                Some("a data file is not in the log, so its pages can tear; the daemon's log says why")
            }
            Self::Bypass => Some(
                "a data file is not in the log, so its pages can tear: the daemon does not take it for one",
            ),
            Self::Later => Some(
                "a data file is not in the log yet, so its pages can tear: the daemon stands still, or cannot \
                 take it now",
            ),
            Self::Suspended => Some(
                "a data file is not in the log yet, so its pages can tear: its database has been frozen for longer than a \
                 change waits",
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
    /// It is left to the kernel, as long as its name and its descriptor are what they are.
    Leave,
    /// It is left to the kernel now. Its next fsyncs ask again, [`ASK_AGAIN`](crate::policy::ASK_AGAIN) times in all.
    AskAgain,
    /// It is left to the kernel now, and that is not remembered: its next change or sync asks again.
    AskNext,
    /// The same, because nobody answered. Somebody else may get an answer while this change is under way.
    Unanswered,
}

impl Course {
    /// True if a directory that was asked for is not asked for again: its names cannot be in the log. A daemon that is frozen,
    /// stands still or is away says nothing about that.
    pub fn refuses_directory(self) -> bool {
        match self {
            Self::Leave | Self::AskAgain => true,
            Self::Log(_) | Self::AskNext | Self::Unanswered => false,
        }
    }
}

/// What became of a file that was to be served from the block cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// It is, in this slot, by this tenant of it.
    File {
        /// The slot.
        slot: u32,
        /// Which of its tenants.
        tenant: u16,
    },
    /// It is not to be.
    Never,
    /// It cannot be now.
    NotNow,
}

impl Entered {
    /// By the answer.
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

/// What became of a real sync by the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synced {
    /// It is on the disk.
    Done,
    /// The disk refused it.
    Failed,
    /// It was not tried.
    Not,
}

impl Synced {
    /// By the answer.
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

/// Of what is done, or not: nothing of it is retried.
pub(super) fn is_done(reply: &Reply) -> bool {
    status(reply) == Status::Ok
}

/// Whether the daemon knows now that this process goes without. One that serves it in no case never thought otherwise.
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

/// Whether who answered a ping is the daemon, or its watchdog, which says that it stands still.
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
