//! Whatever may change a file: announced if the file is entered, counted in its cell if it is not.
//!
//! An append needs no word: it stores behind the end of the file, and a block that the end cuts short is in no cache.
//! For the same reason an allocation that changes nothing but the size needs none.

use core::ffi::{CStr, c_int};
use core::ops::Range;

use seawall_cache::shared::{Cache, Cell, FileRef, Version};

use super::table::{self, Is, Word, mark};
use super::{Known, find, known, who, zone, zone_for};
use crate::session;
use crate::sys::{self, Stat};

/// What a write touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Bytes.
    Bytes {
        /// The first.
        from: u64,
        /// How many.
        len: u64,
    },
    /// It stores behind the end of the file.
    End,
    /// Any part of the file.
    Any,
}

/// A longer write than this many blocks takes the whole file out: that is quicker.
const BLOCKS_MAX: u64 = 256;

/// Runs a write through `fd`.
#[inline]
pub fn write<R>(fd: c_int, span: impl FnOnce() -> Span, op: impl FnOnce() -> R) -> R {
    match zone_for(fd) {
        None => op(),
        Some(cache) => write_in(cache, fd, span, op),
    }
}

/// Runs any other change through `fd`.
#[inline]
pub fn change<R>(fd: c_int, op: impl FnOnce() -> R) -> R {
    write(fd, || Span::Any, op)
}

/// What a write at the descriptor's position touches: that another thread or process may move, so it is not asked for.
pub fn append_or_unknown(fd: c_int) -> Span {
    match sys::flags(fd) {
        Ok(flags) if flags & libc::O_APPEND != 0 => Span::End,
        _ => Span::Any,
    }
}

fn write_in<R>(cache: &Cache, fd: c_int, span: impl FnOnce() -> Span, op: impl FnOnce() -> R) -> R {
    match begin(cache, fd, table::known(cache, fd)) {
        Begun::Not => op(),
        Begun::Counted(cell) => {
            let result = op();
            cache.end_unannounced(cell);
            result
        }
        Begun::Entered(file) => announced(cache, file, span(), op),
    }
}

/// How a change begins.
enum Begun {
    /// There is nothing to it.
    Not,
    /// It is counted.
    Counted(Cell),
    /// It is to be announced.
    Entered(FileRef),
}

#[inline]
fn begin(cache: &Cache, fd: c_int, mut word: Word) -> Begun {
    loop {
        match word.is() {
            Is::Other | Is::Unknown => return Begun::Not,
            Is::Entered(file) if cache.knows(file) => return Begun::Entered(file),
            Is::Entered(_) => {
                table::reset(fd);
                word = table::known(cache, fd);
            }
            Is::Plain(cell, version) => match cache.begin_unannounced(cell, version) {
                Ok(()) => return Begun::Counted(cell),
                Err(now) => {
                    let Some(next) = look_again(cache, fd, word, now) else { return Begun::Not };
                    word = next;
                }
            },
        }
    }
}

/// Files of its cell were entered: is this one of them? `None` if the descriptor is not open any more.
#[cold]
fn look_again(cache: &Cache, fd: c_int, word: Word, now: Version) -> Option<Word> {
    let stat = sys::fstat(fd).ok()?;
    let word = match find(cache, &stat) {
        Some(file) => word.entered(file, 0),
        None => word.seen(now),
    };
    table::set(fd, word);
    Some(word)
}

fn announced<R>(cache: &Cache, file: FileRef, span: Span, op: impl FnOnce() -> R) -> R {
    if matches!(span, Span::End | Span::Bytes { len: 0, .. }) {
        return op();
    }
    let Some(who) = who() else {
        // Nobody could tell whether we died in the middle.
        cache.distrust(file);
        return op();
    };
    match blocks(cache, span) {
        Some(blocks) => {
            let writing = cache.begin_write(who, file, blocks);
            let result = op();
            cache.end_write(writing);
            result
        }
        None => cache.change(who, file, op),
    }
}

/// The blocks of a span; `None` for all, or for too many.
#[inline]
fn blocks(cache: &Cache, span: Span) -> Option<Range<u32>> {
    let Span::Bytes { from, len } = span else { return None };
    let size = u64::from(cache.layout().block_bytes);
    let (first, end) = (from / size, from.checked_add(len)?.div_ceil(size));
    let is_short = end - first <= BLOCKS_MAX;
    Some(u32::try_from(first).ok()?..u32::try_from(end).ok()?).filter(|_| is_short)
}

/// Runs a change of the file at a path (truncate(2), an unlink). Flags as for fstatat(2).
pub fn change_named<R>(dir: c_int, path: Option<&CStr>, flags: c_int, op: impl FnOnce() -> R) -> R {
    let looked = path.and_then(|path| looked_at(dir, path, flags));
    match looked.and_then(|stat| Some((zone()?, stat))) {
        Some((cache, stat)) => change_looked_at(cache, &stat, op),
        None => op(),
    }
}

/// The regular file at a path, if that can matter to the cache.
fn looked_at(dir: c_int, path: &CStr, flags: c_int) -> Option<Stat> {
    let matters = !session::is_off() && !matches!(known(), Known::No);
    let stat = || sys::fstatat(dir, path, flags).ok().filter(|stat| stat.regular);
    if matters { stat() } else { None }
}

/// Runs an open that truncates what is at the path then. If that is another file than was there before the call, what
/// the cache has of it dies afterwards.
pub fn change_opened<E>(
    dir: c_int,
    path: &CStr,
    flags: c_int,
    open: impl FnOnce() -> Result<c_int, E>,
) -> Result<c_int, E> {
    let before = looked_at(dir, path, flags);
    let fd = match before.and_then(|stat| Some((zone()?, stat))) {
        Some((cache, stat)) => change_looked_at(cache, &stat, open),
        None => open(),
    }?;
    let Known::Yes(cache) = known() else { return Ok(fd) };
    let is_other = |now: &Stat| before.is_none_or(|before| (before.dev, before.ino) != (now.dev, now.ino));
    if let Some(now) = sys::fstat(fd).ok().filter(|now| now.regular && is_other(now)) {
        change_looked_at(cache, &now, || ());
    }
    Ok(fd)
}

/// Runs a change of a file that was looked at.
fn change_looked_at<R>(cache: &Cache, stat: &Stat, op: impl FnOnce() -> R) -> R {
    let (cell, mut version) = (cache.cell(stat.dev, stat.ino), Version::default());
    loop {
        match cache.begin_unannounced(cell, version) {
            Ok(()) => {
                let result = op();
                cache.end_unannounced(cell);
                return result;
            }
            Err(now) => version = now,
        }
        if let Some(file) = find(cache, stat) {
            return announced(cache, file, Span::Any, op);
        }
    }
}

/// From now on the file behind `fd` is written at times that nobody sees, if it can be written at all.
pub fn unseen(fd: c_int) {
    let Some(cache) = zone_for(fd) else { return };
    let word = table::known(cache, fd);
    if word.is_other() || word.has(mark::PINNED) || !word.has(mark::WRITES) {
        return;
    }
    let Ok(stat) = sys::fstat(fd) else { return };
    pin(cache, &stat);
    table::set(fd, word.with(mark::PINNED));
}

/// The same for whatever is open.
pub fn pin_open() {
    crate::rings::each_open(unseen);
}

/// Pins a file's cell, and distrusts the file if it is entered. True if that can be taken back.
pub(super) fn pin(cache: &Cache, stat: &Stat) -> bool {
    let is_counted = cache.pin(cache.cell(stat.dev, stat.ino));
    find(cache, stat).into_iter().for_each(|file| cache.distrust(file));
    is_counted
}

/// Runs a real sync of the file behind `fd`.
#[inline]
pub fn sync<E>(fd: c_int, op: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    let Some(cache) = zone_for(fd) else { return op() };
    let file = match begin(cache, fd, table::known(cache, fd)) {
        Begun::Entered(file) => file,
        Begun::Not => return op(),
        Begun::Counted(cell) => {
            cache.end_unannounced(cell);
            return op();
        }
    };
    let number = cache.begin_sync(file);
    let done = op();
    cache.end_sync(file, number, done.is_ok());
    done
}
