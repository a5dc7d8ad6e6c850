//! The engine: where the stages meet. Used by every front, inside the database's process.
//!
//! ```text
//!                  real fsync succeeded, no untracked write since, no hold
//!             ┌──────────────────────────────────────────────────────────────┐
//!             │                                                              ▼
//!         UNTRACKED                                                       TRACKED
//!     writes: the kernel's                                   writes: log, fence, publish
//!     fsync:  the kernel's                                   fsync:  nothing left to do
//!     live records: none                                     (SYNC_NEEDED: one real fsync;
//!                                                             renamed: a sync of the directory)
//!             ▲                                                              │
//!             └──────────────────────────────────────────────────────────────┘
//!                  leave: real fdatasync, watermark raised, under the lock
//! ```
//!
//! Invariant, and the reason for P1–P4 together: **an untracked file has no live records.** So whatever
//! durable path the kernel offers for such a file (sync, msync, O_DSYNC, an aio fsync) needs no care.

mod client;
mod evict;
mod hold;
mod join;
mod name;
mod space;
mod sync;
mod timing;
mod write;

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use seawall_wire::shm::{File, Flag, Shm};

pub use join::JoinError;
#[cfg(feature = "std")]
pub(crate) use timing::class;

use crate::append::{Log, Populated};
use crate::format::{FOREVER, Superblock, SuperblockError};
use crate::lock;
use crate::persist;
use crate::store::Store;
use crate::{Errno, Owner};

/// A managed file, as a descriptor remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRef {
    /// Its slot.
    pub slot: u32,
    /// Generation of the slot at that time.
    pub generation: u32,
}

impl FileRef {
    /// Both in one word, never 0: generations begin at 1.
    #[inline]
    pub const fn word(self) -> u64 {
        (self.generation as u64) << 32 | self.slot as u64
    }

    /// What [`word`](Self::word) made.
    #[inline]
    pub const fn of_word(word: u64) -> Self {
        Self { slot: word as u32, generation: (word >> 32) as u32 }
    }
}

/// Where a write goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// pwrite(2).
    Offset(u64),
    /// write(2): the descriptor's position.
    Cursor,
    /// O_APPEND, RWF_APPEND: the end of the file, whatever the descriptor's position, which stays (pwrite(2)).
    End,
    /// The same, and the descriptor's position is set to it first (write(2)).
    CursorAtEnd,
}

/// What a sync is to make durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// fdatasync(2), O_DSYNC: content and size.
    Data,
    /// fsync(2), O_SYNC: names and attributes too.
    Whole,
}

/// Why an engine was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachError {
    /// The pool's superblock.
    Superblock(SuperblockError),
    /// The run-time memory is not this pool's.
    Foreign,
    /// The pool is the image of what a journal holds, and there is no way to that journal.
    NoJournal,
}

/// The log of one pool, as one process sees it.
pub struct Engine {
    pub(crate) log: Log,
    clock: seawall_stats::Clock,
    gave_up: AtomicBool,
}

impl Engine {
    /// Joins pool and run-time memory.
    ///
    /// # Errors
    /// [`AttachError`] if they do not belong together or the pool cannot be read.
    pub fn attach(pool: impl Into<Store>, shm: Shm) -> Result<Self, AttachError> {
        let pool = pool.into();
        let sb = Superblock::read(&pool).map_err(AttachError::Superblock)?;
        let (layout, shape) = (sb.layout(), shm.shape());
        let same = shm.header().uuid() == u128::from_le_bytes(sb.uuid)
            && shape.segments == layout.segments
            && shape.files == layout.files;
        if !same {
            return Err(AttachError::Foreign);
        }
        // Without it every sync would be absorbed and nothing made durable.
        match (sb.is_journaled(), pool.journal()) {
            (true, None) => return Err(AttachError::NoJournal),
            (true, Some(journal)) if !journal.fits(&pool, layout) => return Err(AttachError::Foreign),
            (false, Some(_)) => return Err(AttachError::Foreign),
            (true, Some(_)) | (false, None) => {}
        }
        let clock = shm.header().clock();
        Ok(Self {
            log: Log {
                pool,
                shm,
                layout,
                uuid_low: sb.uuid_low(),
                spills: sb.spills(),
                populated: Populated::default(),
            },
            clock,
            gave_up: AtomicBool::new(false),
        })
    }

    /// The run-time memory.
    #[inline]
    pub fn shm(&self) -> &Shm {
        &self.log.shm
    }

    /// The pool.
    pub fn pool(&self) -> &Store {
        &self.log.pool
    }

    /// Where everything lies in the pool.
    pub fn layout(&self) -> crate::format::Layout {
        self.log.layout
    }

    /// Asks the daemon to look now.
    pub fn ring(&self) {
        self.log.ring();
    }

    /// True while `file` still names the file it was made for.
    #[inline]
    pub fn knows(&self, file: FileRef) -> bool {
        self.file(file).is_some()
    }

    /// The managed file with this inode.
    pub fn find(&self, dev: u64, ino: u64) -> Option<FileRef> {
        let slot = self.shm().find(dev, ino)?;
        let generation = self.shm().file(slot)?.generation().load(Acquire);
        let file = FileRef { slot, generation };
        self.knows(file).then_some(file)
    }

    /// The file's flags, 0 if it is no longer known.
    pub fn flags(&self, file: FileRef) -> u32 {
        self.file(file).map_or(0, |f| f.flags().load(Acquire))
    }

    /// Sets a flag.
    pub fn set_flag(&self, file: FileRef, flag: Flag) {
        if let Some(f) = self.file(file) {
            f.flags().fetch_or(flag.0, SeqCst);
        }
    }

    /// The next fsync of the file is real: it has another link or other attributes, or was written unseen.
    pub fn need_sync(&self, file: FileRef) {
        if let Some(f) = self.file(file) {
            f.disturb();
            // It may have a set-id bit now, which only a write by a call takes away.
            f.solid().store(0, SeqCst);
        }
    }

    /// A change of links or attributes: the next fsync is real, from before it until after it.
    pub fn touching<R>(&self, file: FileRef, op: impl FnOnce() -> R) -> R {
        self.need_sync(file);
        let result = op();
        self.need_sync(file);
        result
    }

    /// Bytes from the file's start where a store into a mapping of it cannot fail: blocks on disk, inside the
    /// file. 0 unless the file is in the log. To be asked in a publish, where it cannot change.
    #[inline]
    pub fn solid(&self, file: FileRef) -> u64 {
        self.file(file).map_or(0, |f| f.solid().load(Acquire))
    }

    /// Has the daemon find out anew what is [solid](Self::solid). To be called in a publish.
    pub fn ask_for_solid(&self, file: FileRef) {
        if let Some(f) = self.file(file) {
            f.solid().store(0, SeqCst);
            self.ring();
        }
    }

    /// A store is about to publish. To be called in a publish, so that whoever moves the file's times for it comes
    /// after the store.
    #[inline]
    pub fn note_store(&self, file: FileRef) {
        if let Some(f) = self.file(file)
            && !Flag::STORED.any_in(f.flags().load(Relaxed))
        {
            f.flags().fetch_or(Flag::STORED.0, Relaxed);
        }
    }

    #[inline]
    pub(crate) fn file(&self, file: FileRef) -> Option<File<'_>> {
        self.log.shm.file(file.slot).filter(|f| {
            f.generation().load(Acquire) == file.generation && Flag::USED.any_in(f.flags().load(Acquire))
        })
    }

    /// Takes a file out of the log. The caller holds its lock; `retire` is a real fdatasync of it.
    ///
    /// If that fails, the records stay and the file is [`Flag::FAILED`]. So they do if a sync failed before: the
    /// kernel dropped the pages, and an error is never retried into success.
    pub(crate) fn leave(
        &self,
        slot: u32,
        f: File<'_>,
        why: Flag,
        retire: impl FnOnce() -> Result<(), Errno>,
    ) {
        f.solid().store(0, SeqCst);
        let last = retires(f);
        let failed = || Flag::FAILED.any_in(f.flags().load(Acquire));
        if last > f.watermark().load(Acquire) {
            let raise = || persist::watermark(&self.log.pool, slot, f, last);
            match retire() {
                // Another sync was told of an error, before or meanwhile: this one proves nothing.
                Ok(()) if failed() => {}
                Ok(()) if raise().is_ok() => {}
                _ => {
                    f.flags().fetch_or(Flag::FAILED.0, SeqCst);
                }
            }
        }
        f.flags().fetch_or(why.0, SeqCst);
        if Flag::TRACKED.any_in(f.flags().fetch_and(!Flag::TRACKED.0, SeqCst)) {
            f.left().fetch_add(1, Relaxed);
        }
        f.epoch().fetch_add(1, SeqCst);
    }
}

impl Engine {
    /// Lets a file be found, and takes it into the log before anybody can write to it if its every write is to
    /// be logged. `sync` is a real fsync of it; its name is durable already. False: `find` could not do it.
    pub fn admit(
        &self,
        who: Owner,
        file: FileRef,
        find: impl FnOnce() -> bool,
        sync: impl FnOnce() -> Result<(), Errno>,
    ) -> bool {
        let Some(f) = self.file(file) else { return false };
        let _alone = lock::enter(self.shm(), f, who);
        let found = find();
        if found {
            self.rejoin(f, sync);
        }
        found
    }

    /// True for a file that belongs into the log, is not in it, and may return.
    pub(crate) fn may_rejoin(&self, f: File<'_>) -> bool {
        let flags = f.flags().load(Acquire);
        let wanted = Flag::ATOMIC.any_in(flags) && !Flag::TRACKED.any_in(flags);
        wanted && !self.is_exhausted() && self.may_track(f, flags)
    }

    /// Takes a file whose every write is to be logged back into the log at once. The caller holds its lock;
    /// `sync` is a real fdatasync of it. Where that is not possible now the daemon does it later.
    ///
    /// A change of the file that this process cannot know of sets [`Flag::SYNC_NEEDED`] when it is over: that
    /// flag stays, and the next fsync is real.
    pub(crate) fn rejoin(&self, f: File<'_>, sync: impl FnOnce() -> Result<(), Errno>) {
        if !self.may_rejoin(f) {
            return;
        }
        match sync() {
            Ok(()) => track(f),
            Err(_) => distrust(f),
        }
    }
}

/// Up to where a real sync of a file retires its records; the caller holds the lock. Who lost it alive may log another one
/// whenever it goes on, which must not come back either: such a file never returns to the log.
pub(crate) fn retires(f: File<'_>) -> u64 {
    if Flag::STUCK.any_in(f.flags().load(Acquire)) { FOREVER } else { f.last_lsn().load(Acquire) }
}

/// All that was written to a file is durable: it is in the log from now on. The caller holds its lock.
fn track(f: File<'_>) {
    f.flags().fetch_and(!Flag::LOG_FULL.0, SeqCst);
    f.flags().fetch_or(Flag::TRACKED.0, SeqCst);
}

/// A sync of ours failed, and whoever asks next would be told that all is well: the file never returns to the log.
pub(crate) fn distrust(f: File<'_>) {
    f.flags().fetch_or((Flag::FAILED | Flag::SYNC_NEEDED).0, SeqCst);
}
