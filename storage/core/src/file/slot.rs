//! A file's slot in the run-time memory: its words, which are private to this module, what they mean, and the changes
//! that need no lock.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use rustix::io::Errno;
use seawall_stats::Class;
use seawall_wire::shm::{Shm, Words};

use super::{FileRef, Flag, KeptOut, State};

/// View of a file's slot.
#[derive(Clone, Copy)]
pub struct Slot<'a> {
    words: Words<'a>,
    number: u32,
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident : $kind:ident @ $at:expr),* $(,)?) => {
        impl<'a> Slot<'a> {
            $($(#[$doc])* #[inline]
            pub(super) fn $name(self) -> &'a words!(@atomic $kind) { self.words.$kind($at) })*
        }
    };
    (@atomic u32) => { core::sync::atomic::AtomicU32 };
    (@atomic u64) => { core::sync::atomic::AtomicU64 };
}

words! {
    /// Owner word of the writer inside, 0 when free.
    lock: u64 @ 0,
    /// [`Flag`] bits.
    flags: u32 @ 8,
    /// Futex: threads waiting for the lock.
    waiters: u32 @ 12,
    /// The highest LSN given to a record of this file. Written under the lock.
    newest: u64 @ 16,
    /// Counts untracked writes and changes of names, so that a real fsync knows whether one began meanwhile.
    epoch: u64 @ 24,
    /// Sticky holds: mappings, streams, io_uring.
    sticky: u32 @ 32,
    /// Generation of the slot: a descriptor that remembers another one looks its file up anew.
    uses: u32 @ 36,
    /// Index of the root that it lies under.
    root_index: u32 @ 40,
    /// The database's use of it ([`Class`] as a number): its waits are counted there.
    class_number: u32 @ 44,
    /// All records at or below this LSN are on disk. The pool's cell is the truth, this is a mirror.
    on_disk: u64 @ 48,
    /// Bytes from the start that have blocks on disk and lie inside the file: there a store into a mapping cannot fail
    /// for want of space. 0: not known. Only a tracked file has a value.
    solid_bytes: u64 @ 56,
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
    /// How often the file left the log.
    left: u64 @ 120,
    /// Counts the file's renames, twice each: before and after. Like the next word, it continues when the slot changes
    /// hands.
    names: u64 @ 128,
    /// How many of them are durable.
    durable_names: u64 @ 136,
    /// Process and thread that raise the watermark in the pool, 0 for none: even a thread that lost the lock alive does
    /// that alone.
    raising: u64 @ 144,
    /// For a directory: its change time when everything that had happened in it was in the log, in nanoseconds since
    /// the epoch. 0: not known.
    known_change: u64 @ 152,
    /// For a directory: the highest LSN of a record that contains all of a file.
    newest_content: u64 @ 160,
    /// For a directory: changes that waited for a log on a disk or on other hosts since a sync of something in it.
    unsynced: u64 @ 168,
    /// For a directory: the highest LSN of a record that a file of it got a name in another directory. A sync of this one
    /// alone need not make that name durable, though its records say so.
    linked_out: u64 @ 176,
}

/// How far a file's changes have come: two that are equal have no finished change between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stand {
    last: u64,
    epoch: u64,
}

/// Counters of a file since its registration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Absorbed fsyncs.
    pub absorbed: u64,
    /// Real fsyncs.
    pub real_syncs: u64,
    /// Logged writes.
    pub writes: u64,
    /// Logged bytes, as the database counts them.
    pub bytes: u64,
    /// Writes that passed by the log.
    pub untracked_writes: u64,
    /// How often the file left the log.
    pub left: u64,
}

/// Reading a slot.
impl<'a> Slot<'a> {
    /// Slot `number`, used or not. `None` if there is no such slot.
    #[inline]
    pub fn of(shm: &'a Shm, number: u32) -> Option<Self> {
        shm.file_words(number).map(|words| Self { words, number })
    }

    /// Every slot, used or not.
    pub fn all(shm: &'a Shm) -> impl Iterator<Item = Self> {
        (0..shm.shape().files).filter_map(|number| Self::of(shm, number))
    }

    /// Its number.
    #[inline]
    pub fn number(self) -> u32 {
        self.number
    }

    /// The file that has the slot now, if there is one.
    #[inline]
    pub fn file(self) -> FileRef {
        FileRef { slot: self.number, generation: self.uses().load(Acquire) }
    }

    /// True while the slot belongs to this file.
    #[inline]
    pub fn is_of(self, file: FileRef) -> bool {
        self.uses().load(Acquire) == file.generation && self.state().has(Flag::USED)
    }

    /// The file's state.
    #[inline]
    pub fn state(self) -> State {
        State(self.flags().load(Acquire))
    }

    /// st_dev and st_ino.
    #[inline]
    pub fn inode(self) -> (u64, u64) {
        (self.dev().load(Relaxed), self.ino().load(Relaxed))
    }

    /// Index of the registered directory that it lies under.
    pub fn root(self) -> u32 {
        self.root_index().load(Acquire)
    }

    /// The class to which its waits are counted.
    #[inline]
    pub fn class(self) -> Class {
        Class::from_word(self.class_number().load(Relaxed))
    }

    /// The highest LSN given to a record of it.
    #[inline]
    pub fn last_lsn(self) -> u64 {
        self.newest().load(Acquire)
    }

    /// All its records at or below this LSN are on disk.
    #[inline]
    pub fn watermark(self) -> u64 {
        self.on_disk().load(Acquire)
    }

    /// True if it has records that are not known to be on disk.
    #[inline]
    pub fn is_dirty(self) -> bool {
        self.state().has(Flag::USED) && self.has_live()
    }

    /// Bytes from its start where a store into a mapping of it cannot fail: blocks on disk, inside the file.
    #[inline]
    pub fn solid(self) -> u64 {
        self.solid_bytes().load(Acquire)
    }

    /// How many holds keep it out of the log: mappings, streams, io_uring.
    pub fn holds(self) -> u32 {
        self.sticky().load(Acquire)
    }

    /// Its counters.
    pub fn counters(self) -> Counters {
        let read = |word: &core::sync::atomic::AtomicU64| word.load(Relaxed);
        Counters {
            absorbed: read(self.absorbed()),
            real_syncs: read(self.real_syncs()),
            writes: read(self.writes()),
            bytes: read(self.bytes()),
            untracked_writes: read(self.untracked_writes()),
            left: read(self.left()),
        }
    }

    /// The owner word of the thread inside, 0 for none.
    #[inline]
    pub fn holder(self) -> u64 {
        self.lock().load(SeqCst)
    }

    /// Threads that may sleep until the thread inside has left.
    pub fn sleepers(self) -> u32 {
        self.waiters().load(SeqCst)
    }

    /// True for a directory whose change time is that of its last known change.
    pub(crate) fn is_known_at(self, changed: u64) -> bool {
        changed != 0 && self.known_change().load(SeqCst) == changed
    }

    /// True for a directory with a live record that contains all of a file: the disk may lack that file.
    pub fn has_live_content(self) -> bool {
        self.newest_content().load(SeqCst) > self.watermark()
    }

    /// True for a directory with a live record that a file of it got a name in another directory: a sync of this one
    /// alone need not make that name durable, and its watermark would vouch for it.
    pub(crate) fn has_linked_out(self) -> bool {
        self.linked_out().load(SeqCst) > self.watermark()
    }

    /// True for a directory whose real sync has to be one of all files.
    pub(crate) fn is_synced_with_files(self) -> bool {
        self.has_live_content() || self.has_linked_out()
    }

    #[inline]
    pub(super) fn has_live(self) -> bool {
        self.last_lsn() > self.watermark()
    }

    /// True if a rename of it is not durable yet.
    #[inline]
    pub(crate) fn is_name_due(self) -> bool {
        self.names().load(SeqCst) > self.durable_names().load(SeqCst)
    }

    /// How far the file's changes have come, for a caller who looks at it from outside. `None` while a thread is inside.
    pub(crate) fn stand(self) -> Option<Stand> {
        let stand = self.stand_inside();
        // Looked at last: a thread that came in later changes what was read before.
        (self.holder() == 0).then_some(stand)
    }

    /// The same for the thread inside.
    pub(crate) fn stand_inside(self) -> Stand {
        Stand { last: self.newest().load(SeqCst), epoch: self.epoch().load(SeqCst) }
    }

    /// Checks what must hold for every file, whatever is under way.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(self) -> Result<(), &'static str> {
        let state = self.state();
        let is_lost = state.has(Flag::FAILED | Flag::STUCK);
        let is_free = self.holder() == 0;
        match () {
            () if !state.has(Flag::USED) => Ok(()),
            () if self.durable_names().load(SeqCst) > self.names().load(SeqCst) => {
                Err("more of its names are durable than it has had")
            }
            () if is_free && !is_lost && !state.has(Flag::TRACKED) && self.has_live() => {
                Err("it is out of the log and has live records")
            }
            () if is_free && !state.has(Flag::TRACKED) && self.solid() != 0 => {
                Err("it is out of the log, and stores may publish")
            }
            () => Ok(()),
        }
    }
}

/// Changes that need no lock: the caller does not have the file alone, and need not.
impl Slot<'_> {
    /// Asks for a real fsync: the next one, and also the one after a sync that is under way now.
    #[inline]
    pub(crate) fn disturb(self) {
        self.set(Flag::SYNC_NEEDED);
        self.raise_epoch();
    }

    /// The file is about to get another name, or has it now: the next fsync makes that name durable.
    pub(crate) fn renamed(self) {
        if self.state().has(Flag::NAMED_BY_DIRECTORY) {
            self.names().fetch_add(1, SeqCst);
        } else {
            self.disturb();
        }
    }

    /// How many renames there have been: a sync that begins now covers these.
    #[inline]
    pub(crate) fn renames(self) -> u64 {
        self.names().load(SeqCst)
    }

    /// A sync of Seawall's own failed, and the next caller would get a success: the file never returns to the log.
    pub fn distrust(self) {
        self.set(Flag::FAILED | Flag::SYNC_NEEDED);
    }

    /// A real sync that the database asked for failed. The kernel may have dropped the pages and will report success
    /// next time. A tracked file's records still hold the data, so they stay, and the file is not trusted again.
    ///
    /// This covers more than EIO: a file system that allocates late drops pages on ENOSPC and EDQUOT too.
    pub(crate) fn sync_failed(self, error: Errno) {
        self.disturb();
        let never_reached_the_disk = matches!(error, Errno::BADF | Errno::INTR | Errno::INVAL | Errno::NOSYS);
        if !never_reached_the_disk && self.state().has(Flag::TRACKED) {
            self.set(Flag::FAILED);
        }
    }

    /// Keeps the file from returning to the log. It leaves the log at its next change of hands
    /// ([`Inside::leave`](super::Inside)).
    pub(crate) fn keep_out(self, why: KeptOut) {
        self.set(why.flag());
    }

    /// The reason is gone.
    pub(crate) fn let_back(self, why: KeptOut) {
        self.clear(why.flag());
    }

    /// Changes of the file wait while it is out of the log.
    pub(crate) fn suspend(self) {
        self.set(Flag::SUSPENDED);
    }

    /// Changes of the file go on.
    pub(crate) fn resume(self) {
        self.clear(Flag::SUSPENDED);
    }

    /// The file was opened with O_DSYNC or O_SYNC, which Seawall removed.
    pub(crate) fn opened_for_sync(self) {
        self.set(Flag::DSYNC);
    }

    /// No store into a mapping of it may count as safe until it is measured anew.
    #[inline]
    pub(crate) fn forget_solid(self) {
        self.solid_bytes().store(0, SeqCst);
    }

    /// A store is about to publish a write of it.
    #[inline]
    pub(crate) fn note_store(self) {
        if !State(self.flags().load(Relaxed)).has(Flag::STORED) {
            self.flags().fetch_or(Flag::STORED.0, Relaxed);
        }
    }

    /// For a directory: one more change waits for the log. Returns how many did since something in it was synced.
    pub(crate) fn waits_unsynced(self) -> u64 {
        self.unsynced().fetch_add(1, Relaxed)
    }

    /// For a directory: it was synced, or something in it was.
    pub(crate) fn has_synced_names(self) {
        self.unsynced().store(0, Relaxed);
    }

    /// The disk has the file.
    pub(super) fn is_born(self) {
        if self.state().has(Flag::UNBORN) {
            self.clear(Flag::UNBORN);
        }
    }

    /// Counts an fsync that had nothing left to do.
    #[inline]
    pub(crate) fn count_absorbed(self) {
        self.absorbed().fetch_add(1, Relaxed);
    }

    /// Counts a real fsync.
    pub(crate) fn count_real_sync(self) {
        self.real_syncs().fetch_add(1, Relaxed);
    }

    #[inline]
    pub(super) fn set(self, flags: Flag) -> State {
        State(self.flags().fetch_or(flags.0, SeqCst))
    }

    #[inline]
    pub(super) fn clear(self, flags: Flag) -> State {
        State(self.flags().fetch_and(!flags.0, SeqCst))
    }

    /// A sync that is under way does not cover what begins now.
    #[inline]
    pub(super) fn raise_epoch(self) {
        self.epoch().fetch_add(1, SeqCst);
    }
}
