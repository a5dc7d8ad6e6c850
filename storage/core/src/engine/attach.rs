//! One process's view of one pool's log, and looking at its files.

use core::sync::atomic::AtomicBool;

use seawall_wire::shm::Shm;

use super::enter::Finisher;
use crate::append::{Log, Populated};
use crate::file::{FileRef, Slot, State, index};
use crate::format::{Superblock, SuperblockError};
use crate::store::Store;

/// Why an engine was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachError {
    /// The pool's superblock.
    Superblock(SuperblockError),
    /// The run-time memory is not this pool's.
    Foreign,
    /// The pool is the image of a journal, and this process has no way to that journal.
    NoJournal,
}

/// The log of one pool, as one process sees it.
pub struct Engine {
    pub(crate) log: Log,
    pub(super) clock: seawall_stats::Clock,
    pub(super) gave_up: AtomicBool,
    pub(super) finisher: Finisher,
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
            finisher: Finisher::default(),
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
    pub fn wake_daemon(&self) {
        self.log.wake_daemon();
    }

    /// True while `file` still names the file it was made for.
    #[inline]
    pub fn knows(&self, file: FileRef) -> bool {
        self.file(file).is_some()
    }

    /// The managed file with this inode.
    pub fn find(&self, dev: u64, ino: u64) -> Option<FileRef> {
        index::find(self.shm(), dev, ino)
    }

    /// A slot, whichever file has it. `None` if there is no such slot.
    pub fn slot(&self, number: u32) -> Option<Slot<'_>> {
        Slot::of(self.shm(), number)
    }

    /// Every slot, used or not.
    pub fn slots(&self) -> impl Iterator<Item = Slot<'_>> {
        Slot::all(self.shm())
    }

    /// The file's state; empty if the file is no longer known.
    pub fn state(&self, file: FileRef) -> State {
        self.file(file).map_or_else(State::default, Slot::state)
    }

    /// The file's slot, as long as it keeps that slot.
    #[inline]
    pub fn file(&self, file: FileRef) -> Option<Slot<'_>> {
        self.slot(file.slot).filter(|slot| slot.is_of(file))
    }

    /// True if the file has records that are not known to be on disk.
    pub fn is_dirty(&self, file: FileRef) -> bool {
        self.file(file).is_some_and(Slot::is_dirty)
    }
}
