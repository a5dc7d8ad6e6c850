//! The state of a file, as bits.

use core::ops::BitOr;
use core::time::Duration;

/// How long a change of a [suspended](Flag::SUSPENDED) file waits. No freeze that suspends files lasts longer.
pub const SUSPENDED_AT_MOST: Duration = Duration::from_secs(90);

/// Bits of a file's [`State`]. Only the verbs of this module set and clear them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag(pub(super) u32);

impl Flag {
    /// None of them.
    pub(crate) const NONE: Self = Self(0);
    /// All of them.
    #[cfg(feature = "std")]
    pub(super) const ALL: Self = Self(u32::MAX);
    /// The slot holds a file.
    pub const USED: Self = Self(1);
    /// Every write is logged; an fsync has nothing left to do.
    pub const TRACKED: Self = Self(2);
    /// The next fsync must be real (an unseen write, a link, attributes), though writes are logged.
    pub const SYNC_NEEDED: Self = Self(4);
    /// A real sync failed: the file never returns to the log.
    pub const FAILED: Self = Self(8);
    /// A lock holder was lost alive: the file never returns to the log.
    pub const STUCK: Self = Self(16);
    /// The last name is gone: the daemon may forget the slot.
    pub const UNLINKED: Self = Self(32);
    /// A writer without Seawall was seen: the file stays out of the log until that writer has gone.
    pub const FOREIGN: Self = Self(64);
    /// It was opened with O_DSYNC or O_SYNC, which Seawall removed: inherited descriptors count as opened that way.
    pub const DSYNC: Self = Self(128);
    /// It left the log because the log was full.
    pub const LOG_FULL: Self = Self(256);
    /// Its owner was changed: recovery leaves files of others alone, so it never returns to the log.
    pub const GIVEN_AWAY: Self = Self(512);
    /// Every write of it goes through the log ([`Policy::Atomic`](seawall_wire::shm::Policy)): its writes wait while
    /// the log is full.
    pub const ATOMIC: Self = Self(1024);
    /// It lies on ext4 or XFS: a sync of its directory makes a new name durable, and an fdatasync of the file need not
    /// do so.
    pub const NAMED_BY_DIRECTORY: Self = Self(2048);
    /// It was published by a store into a mapping. The kernel need not move its times for that: the daemon does.
    pub const STORED: Self = Self(4096);
    /// It is out of the log, and has no guard, while a copy or a snapshot is taken.
    pub const FROZEN: Self = Self(8192);
    /// No guard can stand where it is now, out of its directory or with a second name: it never returns to the log.
    pub const UNGUARDED: Self = Self(16384);
    /// It is out of the log, and has no guard, while too few keepers have copies of the log.
    pub const ALONE: Self = Self(32768);

    /// A directory: its records are changes of names in it.
    pub const DIRECTORY: Self = Self(131_072);

    /// Its database removed it, and will make it again: it is there, empty, and hidden from programs under Seawall.
    pub const ABSENT: Self = Self(65536);

    /// The disk may know nothing of it yet: its name is in its directory's log, and everything written to it is in its
    /// own.
    pub const UNBORN: Self = Self(262_144);

    /// Its changes wait while it is out of the log: its database may rely on pages that cannot be torn, and a copy is
    /// being taken.
    pub const SUSPENDED: Self = Self(524_288);

    /// Any of these forbids a return to the log.
    pub const NEVER_TRACK: Self = Self(
        Self::FAILED.0
            | Self::STUCK.0
            | Self::UNLINKED.0
            | Self::FOREIGN.0
            | Self::GIVEN_AWAY.0
            | Self::FROZEN.0
            | Self::UNGUARDED.0
            | Self::ALONE.0,
    );
}

impl Flag {
    /// All of these bits except those.
    #[must_use]
    pub const fn without(self, that: Self) -> Self {
        Self(self.0 & !that.0)
    }
}

impl BitOr for Flag {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The bits of a file at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State(pub(super) u32);

impl State {
    /// True if it has any of these bits.
    #[inline]
    pub const fn has(self, any: Flag) -> bool {
        self.0 & any.0 != 0
    }

    /// True if an fsync that begins now has nothing to make durable but names: every write is in the log.
    #[inline]
    pub fn is_absorbed(self) -> bool {
        self.has(Flag::TRACKED) && !self.has(Flag::SYNC_NEEDED | Flag::FAILED | Flag::STUCK)
    }

    /// True for a file whose changes wait for the end of a freeze.
    #[inline]
    pub fn is_suspended(self) -> bool {
        self.has(Flag::SUSPENDED) && !self.has(Flag::TRACKED)
    }

    /// True for a file whose writes are refused: every one of them must be logged, and no sync will take the file into
    /// the log again. Nothing could repair a torn page, and its fsyncs fail anyway.
    #[inline]
    pub(crate) fn is_barred(self) -> bool {
        self.has(Flag::ATOMIC) && self.has(Flag::FAILED) && !self.has(Flag::TRACKED)
    }
}

/// Why a file is kept out of the log by something other than its writer, or for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptOut {
    /// [`Flag::FOREIGN`].
    Foreign,
    /// [`Flag::FROZEN`].
    Frozen,
    /// [`Flag::ALONE`].
    Alone,
    /// [`Flag::UNGUARDED`].
    Unguarded,
    /// [`Flag::GIVEN_AWAY`].
    GivenAway,
    /// [`Flag::UNLINKED`].
    Unlinked,
}

impl KeptOut {
    /// The bit for this reason.
    pub const fn flag(self) -> Flag {
        match self {
            Self::Foreign => Flag::FOREIGN,
            Self::Frozen => Flag::FROZEN,
            Self::Alone => Flag::ALONE,
            Self::Unguarded => Flag::UNGUARDED,
            Self::GivenAway => Flag::GIVEN_AWAY,
            Self::Unlinked => Flag::UNLINKED,
        }
    }
}
