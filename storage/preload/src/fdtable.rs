//! What is known about each descriptor: one word per number, no lock, no allocation.
//!
//! Zero means "unknown". Whatever creates or closes a descriptor resets its entry; the first call that
//! matters classifies it. Numbers beyond the table are classified each time.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

use seawall_core::{FileRef, Right};

use crate::cached::table as cached;
use crate::{owner, sys};

const ENTRIES: usize = 65_536;
static TABLE: [AtomicU64; ENTRIES] = [const { AtomicU64::new(0) }; ENTRIES];
/// Nothing is known of numbers from here on.
static END: AtomicI32 = AtomicI32::new(0);

/// What a descriptor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not looked at yet.
    Unknown,
    /// Not ours: pass it through.
    Unmanaged,
    /// A managed file.
    Managed,
    /// Lies below a root and may become managed at an fsync.
    Candidate,
}

/// One entry:
///
/// ```text
/// 63          32 31     12 11      8 7        2 1     0
/// | generation  |  slot   |  count  |  marks   | state |        managed, or a candidate
/// |   right to write around the log |  marks   | state |        unknown: the file was made here and is not synced
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdEntry(u64);

/// Marks of an entry.
pub mod mark {
    /// Opened with O_APPEND.
    pub const APPEND: u64 = 1 << 2;
    /// Opened for writing.
    pub const WRITABLE: u64 = 1 << 3;
    /// O_DSYNC was taken off when it was opened.
    pub const DSYNC: u64 = 1 << 4;
    /// O_SYNC was taken off (with `DSYNC`).
    pub const SYNC: u64 = 1 << 5;
    /// O_DIRECT was taken off.
    pub const DIRECT: u64 = 1 << 6;
    /// This process keeps the file out of the log until it ends.
    pub const HELD: u64 = 1 << 7;
    /// The marks that stand for flags taken off.
    pub const STRIPPED: u64 = DSYNC | SYNC | DIRECT;
    pub(super) const ALL: u64 = 0xfc;
}

const COUNT_AT: u32 = 8;
const COUNT_MAX: u64 = 15;
const RIGHT_AT: u32 = u64::BITS - Right::BITS;
const SLOT_AT: u32 = 12;
const SLOT_MAX: u64 = (1 << 20) - 1;

impl FdEntry {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self(0);

    /// An entry that is not managed.
    pub const fn other(state: State, marks: u64) -> Self {
        Self(state as u64 | (marks & mark::ALL))
    }

    /// A managed file's entry.
    pub const fn managed(file: FileRef, marks: u64) -> Self {
        assert!(file.slot as u64 <= SLOT_MAX);
        let name = (file.generation as u64) << 32 | (file.slot as u64) << SLOT_AT;
        Self(name | State::Managed as u64 | (marks & mark::ALL))
    }

    /// What it is.
    #[inline]
    pub const fn state(self) -> State {
        match self.0 & 3 {
            0 => State::Unknown,
            1 => State::Unmanaged,
            2 => State::Managed,
            _ => State::Candidate,
        }
    }

    /// The same of a file that was made with this right, and that nobody has looked at yet.
    pub fn unsynced(self, right: Right) -> Self {
        Self(self.without_right().0 | right.word() << RIGHT_AT)
    }

    /// The same without one.
    pub const fn without_right(self) -> Self {
        Self(self.0 & !(u64::MAX << RIGHT_AT))
    }

    /// The right to write around the log.
    #[inline]
    pub fn right(self) -> Option<Right> {
        if self.state() == State::Unknown { Right::from_word(self.0 >> RIGHT_AT) } else { None }
    }

    /// The file of a managed entry.
    #[inline]
    pub const fn file(self) -> FileRef {
        FileRef { slot: ((self.0 >> SLOT_AT) & SLOT_MAX) as u32, generation: (self.0 >> 32) as u32 }
    }

    /// True if it has any of these marks.
    #[inline]
    pub const fn has(self, marks: u64) -> bool {
        self.0 & marks != 0
    }

    /// Its marks.
    pub const fn marks(self) -> u64 {
        self.0 & mark::ALL
    }

    /// The same with marks set or cleared.
    pub const fn with(self, marks: u64, on: bool) -> Self {
        Self(if on { self.0 | (marks & mark::ALL) } else { self.0 & !(marks & mark::ALL) })
    }

    /// The same as a candidate's.
    pub const fn as_candidate(self) -> Self {
        Self(self.0 & (mark::ALL | COUNT_MAX << COUNT_AT) | State::Candidate as u64)
    }

    /// What is counted of a candidate (`seawall_core::client::Due`).
    pub const fn count(self) -> u8 {
        ((self.0 >> COUNT_AT) & COUNT_MAX) as u8
    }

    /// The same with another count.
    pub const fn counted(self, count: u8) -> Self {
        let count = if count as u64 > COUNT_MAX { COUNT_MAX } else { count as u64 };
        Self(self.0 & !(COUNT_MAX << COUNT_AT) | count << COUNT_AT)
    }
}

#[inline]
fn cell(fd: c_int) -> Option<&'static AtomicU64> {
    TABLE.get(usize::try_from(fd).ok()?)
}

/// True if something can be remembered for `fd`.
pub fn has_room(fd: c_int) -> bool {
    cell(fd).is_some()
}

/// What is known about `fd`.
#[inline]
pub fn get(fd: c_int) -> FdEntry {
    cell(fd).map_or(FdEntry::UNKNOWN, |cell| FdEntry(cell.load(Relaxed)))
}

/// Remembers `entry` for `fd`.
pub fn set(fd: c_int, entry: FdEntry) {
    if let Some(cell) = cell(fd) {
        if fd >= END.load(Relaxed) {
            END.fetch_max(fd + 1, Relaxed);
        }
        cell.store(entry.0, Relaxed);
    }
}

/// Remembers how the application has just opened `fd`.
pub fn opened(fd: c_int, marks: u64) {
    if !owner::in_vfork_child() {
        set(fd, FdEntry::other(State::Unknown, marks));
    }
    cached::reset(fd);
}

/// What was just opened as `fd` may be any program's: its first sync says more.
pub fn found_any(fd: c_int) {
    if !owner::in_vfork_child() && get(fd).state() == State::Unknown {
        set(fd, get(fd).as_candidate());
    }
}

/// Forgets `fd`: it was closed, or handed to the application just now. A vfork child has descriptors of its
/// own but its parent's table, and leaves it alone.
#[inline]
pub fn reset(fd: c_int) {
    if get(fd) != FdEntry::UNKNOWN && !owner::in_vfork_child() {
        set(fd, FdEntry::UNKNOWN);
    }
    cached::reset(fd);
}

/// Forgets the descriptors of a range, ends included.
pub fn reset_range(first: u32, last: u32) {
    for fd in first as usize..=(last as usize).min(ENTRIES - 1) {
        reset(fd as c_int);
    }
}

/// `new` is `old` under another number.
pub fn copy(old: c_int, new: c_int) {
    if old != new && get(old) != get(new) && !owner::in_vfork_child() {
        set(new, get(old));
    }
    cached::copy(old, new);
}

/// Changes the entries of one file: O_APPEND belongs to the open file, and several numbers may name it.
pub fn update(file: FileRef, change: impl Fn(c_int, FdEntry) -> FdEntry) {
    for fd in 0..END.load(Relaxed) {
        let entry = get(fd);
        if entry.state() == State::Managed && entry.file() == file {
            set(fd, change(fd, entry));
        }
    }
}

/// The descriptors of managed files that have these marks.
pub fn marked(marks: u64) -> impl Iterator<Item = (c_int, FdEntry)> {
    let all = (0..END.load(Relaxed)).map(|fd| (fd, get(fd)));
    all.filter(move |(_, entry)| entry.state() == State::Managed && entry.has(marks))
}

/// Forgets every unmanaged descriptor: a name moved below a root may be open under one of them.
pub fn reset_unmanaged() {
    for fd in 0..END.load(Relaxed) {
        if get(fd).state() == State::Unmanaged {
            reset(fd);
        }
    }
}

/// The marks of a descriptor that we did not see being opened; `None` for O_PATH, which is good for nothing.
pub fn opened_as(fd: c_int) -> Option<FdEntry> {
    let flags = sys::flags(fd).ok().filter(|flags| flags & libc::O_PATH == 0)?;
    let entry = FdEntry::UNKNOWN.with(mark::APPEND, flags & libc::O_APPEND != 0);
    Some(entry.with(mark::WRITABLE, flags & libc::O_ACCMODE != libc::O_RDONLY))
}
