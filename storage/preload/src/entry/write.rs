//! write, pwrite, writev, pwritev, pwritev2: the hot path.
//!
//! A managed file: table entry, engine, real call. With O_DSYNC taken off (or RWF_DSYNC): then an fsync,
//! which a tracked file absorbs.

use core::ffi::{c_int, c_void};

use libc::iovec;
use seawall_core::{At, Errno, Scope};

use super::point;
use crate::cached::{self, Span};
use crate::classify::{self, Intent, Kind, Target, Watched, is_left_alone};
use crate::fdtable::mark;
use crate::mapped::Turn;
use crate::sys::{self, unsafe_call};
use crate::{app, errno, unsynced};

const RWF_DSYNC: c_int = 2;
const RWF_SYNC: c_int = 4;
const RWF_APPEND: c_int = 0x10;
const RWF_NOAPPEND: c_int = 0x20;

point! {
    fn write | __write (fd: c_int, data: *const c_void, len: usize) -> isize, passes if { is_left_alone(fd) } {
        errno::long(plain(fd, data, len))
    }

    fn pwrite | pwrite64 | __pwrite64 (fd: c_int, data: *const c_void, len: usize, offset: i64) -> isize,
        passes if { is_left_alone(fd) }
    {
        errno::long(at(fd, data, len, offset))
    }

    fn writev (fd: c_int, iov: *const iovec, count: c_int) -> isize, passes if { is_left_alone(fd) } {
        errno::long(vector(fd, iov, count, -1, 0))
    }

    fn pwritev | pwritev64 (fd: c_int, iov: *const iovec, count: c_int, offset: i64) -> isize,
        passes if { is_left_alone(fd) }
    {
        errno::long(vector_at(fd, iov, count, offset))
    }

    fn pwritev2 | pwritev64v2 (fd: c_int, iov: *const iovec, count: c_int, offset: i64, flags: c_int) -> isize,
        passes if { is_left_alone(fd) }
    {
        errno::long(vector(fd, iov, count, offset, flags))
    }
}

/// How a write was asked for.
#[derive(Clone, Copy)]
struct How {
    /// From the descriptor's position, or from an offset.
    at: At,
    /// RWF_ flags.
    flags: c_int,
    /// How many bytes, if that can be known.
    len: Option<usize>,
}

impl How {
    /// Where the kernel puts the write, by a descriptor that `appends` or not.
    #[inline]
    fn place(&self, appends: bool) -> At {
        let appends = self.flags & RWF_APPEND != 0 || appends && self.flags & RWF_NOAPPEND == 0;
        match self.at {
            At::Cursor if appends => At::CursorAtEnd,
            _ if appends => At::End,
            at => at,
        }
    }

    /// What the block cache is to hear of it.
    fn span(&self, fd: c_int) -> Span {
        match (self.at, self.len) {
            (At::Offset(from), Some(len)) => Span::Bytes { from, len: len as u64 },
            (At::Offset(_), None) => Span::Any,
            _ if self.flags & RWF_APPEND != 0 => Span::End,
            _ if self.flags & RWF_NOAPPEND != 0 => Span::Any,
            _ => cached::append_or_unknown(fd),
        }
    }
}

/// write(2).
///
/// # Safety
/// As write(2), for these and the following.
#[inline]
pub unsafe fn plain(fd: c_int, data: *const c_void, len: usize) -> Result<usize, Errno> {
    let how = How { at: At::Cursor, flags: 0, len: Some(len) };
    // SAFETY: the caller's.
    let slices = || unsafe { app::bytes(data, len) }.map(core::iter::once);
    change(fd, how, slices, || unsafe_call!(SYS_write, fd, data, len))
}

/// pwrite(2).
#[inline]
pub unsafe fn at(fd: c_int, data: *const c_void, len: usize, offset: i64) -> Result<usize, Errno> {
    let call = || unsafe_call!(SYS_pwrite64, fd, data, len, offset);
    let Ok(from) = u64::try_from(offset) else { return call() };
    // SAFETY: the caller's.
    let slices = || unsafe { app::bytes(data, len) }.map(core::iter::once);
    change(fd, How { at: At::Offset(from), flags: 0, len: Some(len) }, slices, call)
}

/// pwritev(2): as [`vector`], but -1 is not the descriptor's position.
pub unsafe fn vector_at(fd: c_int, iov: *const iovec, count: c_int, offset: i64) -> Result<usize, Errno> {
    if offset < 0 {
        return Err(Errno::INVAL);
    }
    // SAFETY: the caller's.
    unsafe { vector(fd, iov, count, offset, 0) }
}

/// writev(2) and pwritev2(2); `offset` -1 is the descriptor's position.
pub unsafe fn vector(
    fd: c_int,
    iov: *const iovec,
    count: c_int,
    offset: i64,
    flags: c_int,
) -> Result<usize, Errno> {
    let call = |flags: c_int| match (offset, flags) {
        (-1, 0) => unsafe_call!(SYS_writev, fd, iov, count),
        _ => unsafe_call!(SYS_pwritev2, fd, iov, count, offset, 0, flags),
    };
    let at = match u64::try_from(offset) {
        Ok(from) => At::Offset(from),
        Err(_) if offset == -1 => At::Cursor,
        Err(_) => return call(flags),
    };
    // SAFETY: the caller's.
    let slices = || unsafe { app::slices(iov, count) };
    // A managed file's sync is the engine's; for any other file the kernel gets the flags as they came.
    let is_ours =
        syncs(flags) && matches!(classify::look_up_or_register(fd, Intent::Write), Kind::Managed(_));
    let passed = if is_ours { flags & !(RWF_DSYNC | RWF_SYNC) } else { flags };
    // SAFETY: as above.
    let len = unsafe { app::pieces(iov, count) }.map(|all| all.iter().map(|piece| piece.iov_len).sum());
    change(fd, How { at, flags, len }, slices, || call(passed))
}

/// The common course: `slices` gives `None` for arguments that the kernel must judge.
#[inline]
fn change<'d, D: Iterator<Item = &'d [u8]> + Clone>(
    fd: c_int,
    how: How,
    slices: impl FnOnce() -> Option<D>,
    call: impl FnOnce() -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    cached::write(fd, || how.span(fd), || logged(fd, how, slices, call))
}

#[inline]
fn logged<'d, D: Iterator<Item = &'d [u8]> + Clone>(
    fd: c_int,
    how: How,
    slices: impl FnOnce() -> Option<D>,
    call: impl FnOnce() -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    if !syncs(how.flags)
        && let Some(around) = unsynced::around(fd)
    {
        return unsynced::change(fd, around, call);
    }
    match classify::look_up_or_register(fd, Intent::Write) {
        Kind::Kernel => call(),
        Kind::Managed(target) if target.writable() => managed(&target, fd, how, slices(), call),
        Kind::Managed(_) => call(),
        Kind::Watched(watched) => self::watched(&watched, fd, how, slices, call),
        Kind::Nobody => Err(Errno::IO),
    }
}

#[inline]
fn managed<'d, D: Iterator<Item = &'d [u8]> + Clone>(
    target: &Target,
    fd: c_int,
    how: How,
    slices: Option<D>,
    call: impl FnOnce() -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let place = how.place(target.entry.has(mark::APPEND));
    let readable = |all: &D| all.clone().all(|s| app::is_readable(s.as_ptr() as usize, s.len()));
    let Some(slices) = slices.filter(readable) else {
        return target.pass(fd, call);
    };
    if target.entry.has(mark::DIRECT) {
        aligned(fd, place, slices.clone())?;
    }
    let begun = target.engine.begin(target.who, target.file, sys::borrow(fd));
    // What takes a locked instruction is done best before the record's stores: one behind them waits until the medium has
    // them, where else that wait is shared with the publish's own.
    let turn = match place {
        At::Offset(from) if begun.is_tracked() => Turn::take(target).map(|turn| (turn, from)),
        _ => None,
    };
    let logged = begun.log_write(place, slices.clone());
    if target.engine.gave_up() {
        sys::say(&["the log stays full: data files leave it, and their pages can tear until they are back"]);
    }
    let change = logged?;
    let done = match turn {
        Some((turn, from)) => turn.publish(target, fd, (from, change.now()), slices.clone(), call),
        None => call(),
    };
    let length = slices.map(<[u8]>::len).sum();
    change.finish(done == Ok(length));
    let n = done?;
    if (syncs(how.flags) || target.entry.has(mark::DSYNC)) && n > 0 {
        target.sync(fd, scope(how.flags, target.entry.marks()))?;
    }
    Ok(n)
}

/// A candidate, or an unmanaged file whose descriptor lost flags.
#[cold]
fn watched<'d, D: Iterator<Item = &'d [u8]> + Clone>(
    watched: &Watched,
    fd: c_int,
    how: How,
    slices: impl FnOnce() -> Option<D>,
    call: impl FnOnce() -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    if watched.entry.has(mark::DIRECT)
        && let Some(slices) = slices()
    {
        aligned(fd, how.at, slices)?;
    }
    let n = call()?;
    watched.written();
    if watched.entry.has(mark::DSYNC) {
        sys::sync(fd, scope(how.flags, watched.entry.marks()))?;
    }
    Ok(n)
}

/// True for the flags of a write that is a sync as well.
fn syncs(flags: c_int) -> bool {
    flags & (RWF_DSYNC | RWF_SYNC) != 0
}

fn scope(flags: c_int, marks: u64) -> Scope {
    if flags & RWF_SYNC != 0 || marks & mark::SYNC != 0 { Scope::Whole } else { Scope::Data }
}

/// O_DIRECT was taken off: refuse what the kernel would have refused.
#[cold]
fn aligned<'d>(fd: c_int, at: At, slices: impl Iterator<Item = &'d [u8]> + Clone) -> Result<(), Errno> {
    let from = match at {
        At::Offset(from) => from as usize,
        At::Cursor => unsafe_call!(SYS_lseek, fd, 0, libc::SEEK_CUR)?,
        At::CursorAtEnd | At::End => 0,
    };
    let fits = |memory: usize, offset: usize| {
        let each = |s: &[u8]| (s.as_ptr() as usize).is_multiple_of(memory) && s.len().is_multiple_of(offset);
        from.is_multiple_of(offset) && slices.clone().all(each)
    };
    const PAGE: usize = 4096;
    if fits(PAGE, PAGE) {
        return Ok(());
    }
    let (memory, offset) = alignment(fd);
    if fits(memory, offset) { Ok(()) } else { Err(Errno::INVAL) }
}

/// What the file system asks of direct I/O: memory and offset alignment.
fn alignment(fd: c_int) -> (usize, usize) {
    const STATX_DIOALIGN: u32 = 0x2000;
    const FALLBACK: usize = 512;
    // SAFETY: all-zero is a valid `statx`: it is plain numbers.
    let mut stat: libc::statx = unsafe { core::mem::zeroed() };
    let asked = unsafe_call!(SYS_statx, fd, c"".as_ptr(), libc::AT_EMPTY_PATH, STATX_DIOALIGN, &raw mut stat);
    let known = asked.is_ok() && stat.stx_mask & STATX_DIOALIGN != 0 && stat.stx_dio_offset_align > 0;
    match known {
        true => (stat.stx_dio_mem_align.max(1) as usize, stat.stx_dio_offset_align as usize),
        false => (FALLBACK, FALLBACK),
    }
}
