//! What each descriptor remembers of the cache: one word per number, beside [`fdtable`](crate::fdtable)'s and reset
//! with it.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use seawall_cache::shared::{Cache, Cell, FileRef, Version};

use crate::owner;
use crate::sys::{self, Stat};

pub(super) const ENTRIES: usize = 65_536;
static TABLE: [AtomicU64; ENTRIES] = [const { AtomicU64::new(0) }; ENTRIES];

/// A word; zero says nothing.
///
/// ```text
///           63      48 47       24 23    8 7     2 1   0
/// plain    |  pause   |  version  |  cell | marks | 1   |
/// entered  |  tenant  |  slot     |       | marks | 2   |
/// other    |                                      | 3   |
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(u64);

/// Marks.
pub mod mark {
    /// Open for writing.
    pub const WRITES: u64 = 1 << 2;
    /// Open for reading.
    pub const READS: u64 = 1 << 3;
    /// O_DIRECT.
    pub const DIRECT: u64 = 1 << 4;
    /// It is not to be served, by the daemon's word.
    pub const NEVER: u64 = 1 << 5;
    /// Its cell is pinned.
    pub const PINNED: u64 = 1 << 6;
    /// By the daemon's word it is the file in this slot; else one that was found by device and inode.
    pub const SURE: u64 = 1 << 7;
    pub(super) const ALL: u64 = 0xfc;
}

/// What a word says.
pub enum Is {
    /// Nothing.
    Unknown,
    /// A regular file that was not entered when its cell had this version.
    Plain(Cell, Version),
    /// A file in a slot of the cache.
    Entered(FileRef),
    /// No regular file, or nothing can be done with it.
    Other,
}

impl Word {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self(0);
    /// No business of the cache's.
    pub const OTHER: Self = Self(3);

    const fn plain(cell: Cell, version: Version, marks: u64) -> Self {
        Self(1 | marks & mark::ALL | (cell.number() as u64) << 8 | (version.number() as u64) << 24)
    }

    /// The same descriptor, its file in a slot. Slots have 24 bits at most, as there are 65,536.
    pub const fn entered(self, file: FileRef, marks: u64) -> Self {
        let name = (file.slot as u64 & 0xff_ffff) << 24 | (file.tenant as u64) << 48;
        Self(2 | (self.0 | marks) & mark::ALL | name)
    }

    /// The same with its cell looked at again.
    pub const fn seen(self, version: Version) -> Self {
        Self(self.0 & !(0xff_ffff << 24) | (version.number() as u64) << 24)
    }

    /// What it says.
    #[inline]
    pub const fn is(self) -> Is {
        match self.0 & 3 {
            0 => Is::Unknown,
            1 => Is::Plain(
                Cell::from_number((self.0 >> 8) as u16),
                Version::from_number((self.0 >> 24) as u32),
            ),
            2 => Is::Entered(FileRef {
                slot: (self.0 >> 24) as u32 & 0xff_ffff,
                tenant: (self.0 >> 48) as u16,
            }),
            _ => Is::Other,
        }
    }

    /// True for [`OTHER`](Self::OTHER).
    #[inline]
    pub const fn is_other(self) -> bool {
        self.0 & 3 == 3
    }

    /// True if it has all these marks.
    #[inline]
    pub const fn has(self, marks: u64) -> bool {
        self.0 & marks == marks
    }

    /// The same with these marks.
    pub const fn with(self, marks: u64) -> Self {
        Self(self.0 | marks & mark::ALL)
    }

    /// How many reads a plain file lets pass before it asks again.
    #[inline]
    pub const fn pause(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// The same with another pause.
    #[inline]
    pub const fn with_pause(self, pause: u16) -> Self {
        Self(self.0 & !(0xffff << 48) | (pause as u64) << 48)
    }
}

#[inline]
fn cell(fd: c_int) -> Option<&'static AtomicU64> {
    TABLE.get(usize::try_from(fd).ok()?)
}

/// What is remembered for `fd`.
#[inline]
pub fn get(fd: c_int) -> Word {
    cell(fd).map_or(Word::UNKNOWN, |cell| Word(cell.load(Relaxed)))
}

/// Remembers `word`. In a vfork child the table is its parent's, and is left alone.
pub fn set(fd: c_int, word: Word) {
    if let Some(cell) = cell(fd)
        && !owner::in_vfork_child()
    {
        cell.store(word.0, Relaxed);
    }
}

/// One more read of a plain file passes. By a plain store, for a vfork child's reads count as well as its parent's.
#[inline]
pub fn let_pass(fd: c_int, word: Word) {
    if let Some(cell) = cell(fd) {
        cell.store(word.with_pause(word.pause().saturating_sub(1)).0, Relaxed);
    }
}

/// Forgets `fd`.
#[inline]
pub fn reset(fd: c_int) {
    if get(fd) != Word::UNKNOWN {
        set(fd, Word::UNKNOWN);
    }
}

/// `new` is `old` under another number.
pub fn copy(old: c_int, new: c_int) {
    if old != new && get(old) != get(new) {
        set(new, get(old));
    }
}

/// What is remembered, found out at first use. Nothing is remembered of a number beyond the table, and of none that is
/// not open.
#[inline]
pub fn known(cache: &Cache, fd: c_int) -> Word {
    match get(fd) {
        Word::UNKNOWN => find_out(cache, fd),
        word => word,
    }
}

#[cold]
fn find_out(cache: &Cache, fd: c_int) -> Word {
    let Ok(stat) = sys::fstat(fd) else { return Word::OTHER };
    let word = look(cache, fd, &stat);
    set(fd, word);
    word
}

fn look(cache: &Cache, fd: c_int, stat: &Stat) -> Word {
    let flags = sys::flags(fd).ok().filter(|flags| stat.regular && flags & libc::O_PATH == 0);
    let Some(flags) = flags else { return Word::OTHER };
    let mode = flags & libc::O_ACCMODE;
    let of = |mark, yes| if yes { mark } else { 0 };
    let marks = of(mark::WRITES, mode != libc::O_RDONLY)
        | of(mark::READS, mode != libc::O_WRONLY)
        | of(mark::DIRECT, flags & libc::O_DIRECT != 0);
    Word::plain(cache.cell(stat.dev, stat.ino), Version::default(), marks)
}
