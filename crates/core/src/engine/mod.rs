//! The engine: where the stages meet. Used by every front, inside the database's process.
//!
//! What is known of a file, and every change of that, is [`crate::file`]'s.

mod client;
mod hold;
mod join;
mod name;
mod space;
mod sync;
mod timing;
mod write;

use core::sync::atomic::AtomicBool;

use seawall_wire::shm::Shm;

pub use join::JoinError;

use crate::append::{Log, Populated};
use crate::file::{self, Entered, FileRef, Inside, KeptOut, Slot, State};
use crate::format::{FOREVER, Superblock, SuperblockError};
use crate::store::Store;
use crate::{Errno, Owner};

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
        file::find(self.shm(), dev, ino)
    }

    /// A slot, whichever file has it. `None` if there is no such slot.
    pub fn slot(&self, number: u32) -> Option<Slot<'_>> {
        Slot::of(self.shm(), number)
    }

    /// Every slot, used or not.
    pub fn slots(&self) -> impl Iterator<Item = Slot<'_>> {
        Slot::all(self.shm())
    }

    /// What is said of the file; nothing if it is no longer known.
    pub fn state(&self, file: FileRef) -> State {
        self.file(file).map_or_else(State::default, Slot::state)
    }

    /// Its slot, as long as it is its own.
    #[inline]
    pub fn file(&self, file: FileRef) -> Option<Slot<'_>> {
        self.slot(file.slot).filter(|slot| slot.is_of(file))
    }

    /// True if the file has records that are not known to be on disk.
    pub fn is_dirty(&self, file: FileRef) -> bool {
        self.file(file).is_some_and(Slot::is_dirty)
    }

    /// Enters a file, waiting as long as it takes.
    #[inline]
    pub(crate) fn enter(&self, who: Owner, file: FileRef) -> Entering<'_> {
        let Some(slot) = self.file(file) else { return Entering::Gone };
        match slot.enter(self.shm(), who) {
            Entered::Nested => Entering::Nested(slot),
            Entered::Alone(inside) if slot.is_of(file) => Entering::Alone(inside),
            // It lost its slot meanwhile, so nobody has it open any more: the kernel says what a descriptor is.
            Entered::Alone(_) => Entering::Gone,
        }
    }
}

/// How a file was entered that may be known no longer.
pub(crate) enum Entering<'a> {
    /// Alone, until it is dropped.
    Alone(Inside<'a>),
    /// This thread is inside already.
    Nested(Slot<'a>),
    /// The slot is not the file's any more.
    Gone,
}

/// What a front or the daemon says of a file, without its lock.
impl Engine {
    /// The next fsync of the file is real: it has another link or other attributes, or was written unseen.
    pub fn need_sync(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.disturb();
            // It may have a set-id bit now, which only a write by a call takes away.
            slot.forget_solid();
        }
    }

    /// A change of links or attributes: the next fsync is real, from before it until after it.
    pub fn touching<R>(&self, file: FileRef, op: impl FnOnce() -> R) -> R {
        self.need_sync(file);
        let result = op();
        self.need_sync(file);
        result
    }

    /// Keeps the file from returning to the log, until it is [let back](Self::let_back). It is still to be taken out.
    pub fn keep_out(&self, file: FileRef, why: KeptOut) {
        if let Some(slot) = self.file(file) {
            slot.keep_out(why);
        }
    }

    /// That reason is gone: the file returns to the log after the next undisturbed real fsync, if there is no other.
    pub fn let_back(&self, file: FileRef, why: KeptOut) {
        if let Some(slot) = self.file(file) {
            slot.let_back(why);
        }
    }

    /// A sync of the caller's own failed, of which nobody else was told: the file never returns to the log.
    pub fn distrust(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.distrust();
        }
    }

    /// Somebody opened the file with O_DSYNC or O_SYNC that was taken off: inherited descriptors count as such.
    pub fn opened_for_sync(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.opened_for_sync();
        }
    }

    /// Bytes from the file's start where a store into a mapping of it cannot fail: blocks on disk, inside the
    /// file. 0 unless the file is in the log. To be asked in a publish, where it cannot change.
    #[inline]
    pub fn solid(&self, file: FileRef) -> u64 {
        self.file(file).map_or(0, Slot::solid)
    }

    /// Has the daemon find out anew what is [solid](Self::solid). To be called in a publish.
    pub fn ask_for_solid(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.forget_solid();
            self.ring();
        }
    }

    /// A store is about to publish. To be called in a publish, so that whoever moves the file's times for it comes
    /// after the store.
    #[inline]
    pub fn note_store(&self, file: FileRef) {
        if let Some(slot) = self.file(file) {
            slot.note_store();
        }
    }

    /// Raises the file's watermark for a front that has its lock, saw a real sync of it succeed, and does not reach the
    /// journal's device itself.
    ///
    /// # Errors
    /// EBADF if the file is not known, EINVAL for an LSN that it never had, or what the device said.
    pub fn retire_for(&self, file: FileRef, lsn: u64) -> Result<(), Errno> {
        let slot = self.file(file).ok_or(Errno::BADF)?;
        let is_its_own = lsn <= slot.last_lsn() || lsn == FOREVER && slot.state().has(file::Flag::STUCK);
        if is_its_own { slot.raise_watermark(self.pool(), lsn) } else { Err(Errno::INVAL) }
    }
}

/// Return to the log.
impl Engine {
    /// True if nothing but what is not durable yet keeps a file out that belongs into the log.
    pub(crate) fn may_rejoin(&self, slot: Slot<'_>) -> bool {
        let state = slot.state();
        let wanted = state.has(file::Flag::ATOMIC) && !state.has(file::Flag::TRACKED);
        wanted && !self.is_exhausted() && slot.may_track(state, self.has_room())
    }

    /// Takes a file whose every write is to be logged back into the log at once; `sync` is a real fdatasync of it.
    /// Where that is not possible now the daemon does it later.
    ///
    /// A change of the file that this process cannot know of sets [`Flag::SYNC_NEEDED`](file::Flag) when it is over: that
    /// flag stays, and the next fsync is real.
    pub(crate) fn rejoin(&self, inside: &Inside<'_>, sync: impl FnOnce() -> Result<(), Errno>) {
        if !self.may_rejoin(inside.slot()) {
            return;
        }
        match sync() {
            Ok(()) => inside.track(self.has_room()),
            Err(_) => inside.slot().distrust(),
        }
    }
}
