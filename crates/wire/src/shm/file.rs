//! A managed file's slot.
//!
//! Invariant: a file that is not [`Flag::TRACKED`] has no live records.

use core::ops::BitOr;
use core::sync::atomic::Ordering::SeqCst;

use seawall_media::Region;

use super::words;

/// Bits of [`File::flags`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag(pub u32);

impl Flag {
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
    /// A writer without Seawall was seen: the file stays out of the log until it has gone.
    pub const FOREIGN: Self = Self(64);
    /// Somebody opened it with O_DSYNC or O_SYNC that we took off: inherited descriptors count as such.
    pub const DSYNC: Self = Self(128);
    /// It left the log because the log was full.
    pub const LOG_FULL: Self = Self(256);
    /// Its owner was changed: recovery leaves files of others alone, so it never returns to the log.
    pub const GIVEN_AWAY: Self = Self(512);
    /// Every write of it goes through the log ([`Policy::Atomic`](super::Policy)): a full log is waited for.
    pub const ATOMIC: Self = Self(1024);
    /// It lies on ext4 or XFS: a sync of its directory makes a new name durable, and fdatasync of the file is not
    /// expected to.
    pub const NAMED_BY_DIRECTORY: Self = Self(2048);
    /// It was published by a store into a mapping, for which the kernel need not move its times: the daemon does.
    pub const STORED: Self = Self(4096);
    /// It is out of the log while a copy or a snapshot is taken, and has no guard.
    pub const FROZEN: Self = Self(8192);
    /// No guard can be where it is now, out of its directory or with a second name: it never returns to the log.
    pub const UNGUARDED: Self = Self(16384);

    /// Any of these forbids a return to the log.
    pub const NEVER_TRACK: Self = Self(
        Self::FAILED.0
            | Self::STUCK.0
            | Self::UNLINKED.0
            | Self::FOREIGN.0
            | Self::GIVEN_AWAY.0
            | Self::FROZEN.0
            | Self::UNGUARDED.0,
    );

    /// True if `flags` has any of these bits.
    #[inline]
    pub const fn any_in(self, flags: u32) -> bool {
        flags & self.0 != 0
    }
}

impl BitOr for Flag {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// View of a file slot.
#[derive(Clone, Copy)]
pub struct File<'a> {
    region: &'a Region,
    at: usize,
}

words!(File {
    /// Owner word of the writer inside, 0 when free.
    lock: u64 @ 0,
    /// [`Flag`] bits.
    flags: u32 @ 8,
    /// Futex: threads waiting for the lock.
    waiters: u32 @ 12,
    /// The highest LSN given to a record of this file. Written under the lock.
    last_lsn: u64 @ 16,
    /// Counts untracked writes and changes of names, so that a real fsync knows whether one began meanwhile.
    epoch: u64 @ 24,
    /// Sticky holds: mappings, streams, asynchronous rings.
    sticky: u32 @ 32,
    /// Generation of the slot: descriptors that remember another one classify anew.
    generation: u32 @ 36,
    /// Index of the root it lies under.
    root: u32 @ 40,
    /// What the database uses it for ([`Class`](seawall_stats::Class) as a number): its waits are counted there.
    class: u32 @ 44,
    /// All records at or below are on disk. The pool's cell is the truth, this a mirror.
    watermark: u64 @ 48,
    /// Bytes from the start that have blocks on disk and lie inside the file: there a store into a mapping
    /// cannot fail for want of space. 0: not known. Only a tracked file has any.
    solid: u64 @ 56,
    /// st_dev.
    dev: u64 @ 64,
    /// st_ino.
    ino: u64 @ 72,
    /// Absorbed fsyncs.
    absorbed: u64 @ 80,
    /// Real fsyncs.
    real_syncs: u64 @ 88,
    /// Logged writes.
    writes: u64 @ 96,
    /// Logged bytes, as the database counts them.
    bytes: u64 @ 104,
    /// Writes that passed by the log.
    untracked_writes: u64 @ 112,
    /// How often it left the log.
    left: u64 @ 120,
    /// Counts its renames, twice each: before and after. Like the next one it goes on when the slot changes hands.
    names: u64 @ 128,
    /// How many of them are on disk.
    durable_names: u64 @ 136,
    /// Process and thread that raise the watermark in the pool, 0 for none: also whoever lost the lock alive does that alone.
    raising: u64 @ 144,
});

impl<'a> File<'a> {
    /// Bytes it occupies.
    pub const BYTES: usize = 192;

    pub(crate) fn new(region: &'a Region, at: usize) -> Self {
        Self { region, at }
    }

    /// Asks for a real fsync: the next one, and also the one after a sync that is under way now.
    pub fn disturb(&self) {
        self.flags().fetch_or(Flag::SYNC_NEEDED.0, SeqCst);
        self.epoch().fetch_add(1, SeqCst);
    }
}
