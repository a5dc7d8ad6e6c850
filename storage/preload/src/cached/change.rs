//! Whatever may change a file, as this process sees it: by a descriptor, by a path, or at times of its own. What to announce
//! then is [`seawall_cache::front::change`]'s.

use core::ffi::{CStr, c_int};

use seawall_cache::front::change as front;
use seawall_cache::front::change::{Inode, Opened};
use seawall_cache::front::word::Word;
use seawall_cache::shared::{Cache, OperationOwner};

pub use front::Span;

use super::reach::{who, zone, zone_for};
use super::zone::{Known, known};
use super::{pin, table};
use crate::log;
use crate::sys::{self, Stat};

/// A descriptor.
#[derive(Clone, Copy)]
struct Descriptor(c_int);

impl Opened for Descriptor {
    #[inline]
    fn word(&self, cache: &Cache) -> Word {
        table::known(cache, self.0)
    }

    fn remember(&self, word: Word) {
        table::set(self.0, word);
    }

    fn inode(&self) -> Option<Inode> {
        sys::fstat(self.0).ok().map(|stat| (stat.dev, stat.ino))
    }

    #[inline]
    fn who(&self) -> Option<OperationOwner> {
        who()
    }
}

/// Runs a write through `fd`.
#[inline]
pub fn write<R>(fd: c_int, span: impl FnOnce() -> Span, op: impl FnOnce() -> R) -> R {
    match zone_for(fd) {
        None => op(),
        Some(cache) => front::write(cache, &Descriptor(fd), span, op),
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
    let matters = !log::is_off() && !matches!(known(), Known::No);
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
    front::change(cache, (stat.dev, stat.ino), who, op)
}

/// From now on the file behind `fd` is written at times that nobody sees, if it can be written at all.
pub fn unseen(fd: c_int) {
    if let Some(cache) = zone_for(fd) {
        pin::pin(cache, fd);
    }
}

/// Runs a real sync of the file behind `fd`.
#[inline]
pub fn sync<E>(fd: c_int, op: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    match zone_for(fd) {
        None => op(),
        Some(cache) => front::sync(cache, &Descriptor(fd), op),
    }
}
