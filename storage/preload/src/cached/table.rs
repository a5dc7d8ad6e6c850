//! What each descriptor remembers of the cache: one word per number, beside [`fdtable`](crate::fdtable)'s and reset
//! with it.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use seawall_cache::front::sequential::Stream;
use seawall_cache::front::word::{Word, mark};
use seawall_cache::shared::{Cache, Version};

use crate::owner;
use crate::sys::{self, Stat};

const ENTRIES: usize = 65_536;
static TABLE: [AtomicU64; ENTRIES] = [const { AtomicU64::new(0) }; ENTRIES];
static STREAMS: [Stream; ENTRIES] = [const { Stream::new() }; ENTRIES];

/// Where the descriptor's reads are.
#[inline]
pub fn stream(fd: c_int) -> Option<&'static Stream> {
    STREAMS.get(usize::try_from(fd).ok()?)
}

#[inline]
fn cell(fd: c_int) -> Option<&'static AtomicU64> {
    TABLE.get(usize::try_from(fd).ok()?)
}

/// What is remembered for `fd`.
#[inline]
pub fn get(fd: c_int) -> Word {
    cell(fd).map_or(Word::UNKNOWN, |cell| Word::from_bits(cell.load(Relaxed)))
}

/// Remembers `word`. In a vfork child the table is its parent's, and is left alone.
pub fn set(fd: c_int, word: Word) {
    if let Some(cell) = cell(fd)
        && !owner::in_vfork_child()
    {
        cell.store(word.bits(), Relaxed);
    }
}

/// One more read passes, by which a pause has become shorter. By a plain store, for a vfork child's reads count as well
/// as its parent's.
#[inline]
pub fn let_pass(fd: c_int, word: Word) {
    if let Some(cell) = cell(fd) {
        cell.store(word.bits(), Relaxed);
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
