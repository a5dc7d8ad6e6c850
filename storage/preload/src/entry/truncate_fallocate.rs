//! ftruncate is logged in order with the writes, and so is what fallocate adds to a file's size; truncate by path
//! and a fallocate that changes content leave the log first.

use core::ffi::{c_char, c_int};

use seawall_core::Errno;

use super::{entry, point, real_or};
use crate::classify::{self, Intent, Kind};
use crate::guard::Led;
use crate::sys::{self, unsafe_call};
use crate::{app, cached, errno, guard, look, named};

entry! {
    fn ftruncate | ftruncate64 (fd: c_int, len: i64) -> c_int { errno::int(file(fd, len)) }

    fn truncate | truncate64 (path: *const c_char, len: i64) -> c_int { errno::int(by_path(path, len)) }

    /// Returns the error instead of setting errno. libc's own, because it falls back to writing.
    fn posix_fallocate | posix_fallocate64 (fd: c_int, offset: i64, len: i64) -> c_int {
        let answer = extend(fd, offset, len, true, || {
            // As libc begins; what it does where that is not supported stores zeros.
            let done = unsafe_call!(SYS_fallocate, fd, 0, offset, len).map(drop);
            if done != Err(Errno::OPNOTSUPP) {
                return done;
            }
            let n: c_int = cached::change(fd, || {
                real_or!(libc::ENOSYS, c"posix_fallocate", fn(fd: c_int, offset: i64, len: i64) -> c_int)
            });
            if n == 0 { Ok(()) } else { Err(Errno::from_raw_os_error(n)) }
        });
        answer.map_or_else(|e| e.raw_os_error(), |()| 0)
    }
}

point! {
    fn fallocate | fallocate64 (fd: c_int, mode: c_int, offset: i64, len: i64) -> c_int {
        errno::int(allocate(fd, mode, offset, len))
    }
}

/// ftruncate(2).
pub fn file(fd: c_int, len: i64) -> Result<usize, Errno> {
    let call = || unsafe_call!(SYS_ftruncate, fd, len).map(drop);
    let size = u64::try_from(len).ok().map(Size::Is);
    cached::change(fd, || resize(fd, size, call)).map(|()| 0)
}

/// truncate(2).
///
/// # Safety
/// As truncate(2).
pub unsafe fn by_path(path: *const c_char, len: i64) -> Result<usize, Errno> {
    let call = |led: Led| {
        // SAFETY: the caller's.
        let name = unsafe { app::path(led.path()) };
        let seen = name.and_then(|path| look::at(libc::AT_FDCWD, path, 0));
        let truncate = || led.act(|| unsafe_call!(SYS_truncate, led.path(), len));
        cached::change_named(libc::AT_FDCWD, name, 0, || match seen {
            Some(seen) => seen.pass(truncate),
            None => truncate(),
        })
    };
    // SAFETY: the caller's.
    unsafe { guard::acting(libc::AT_FDCWD, path, call) }
}

/// fallocate(2), in every mode.
pub fn allocate(fd: c_int, mode: c_int, offset: i64, len: i64) -> Result<usize, Errno> {
    let call = || unsafe_call!(SYS_fallocate, fd, mode, offset, len);
    match mode {
        0 | libc::FALLOC_FL_KEEP_SIZE => extend(fd, offset, len, mode == 0, || call().map(drop)).map(|()| 0),
        _ => classify::pass(fd, call),
    }
}

/// An allocation that changes nothing but, with `grows`, the size.
fn extend(
    fd: c_int,
    offset: i64,
    len: i64,
    grows: bool,
    call: impl FnOnce() -> Result<(), Errno>,
) -> Result<(), Errno> {
    let end =
        offset.checked_add(len).filter(|_| offset >= 0 && len > 0).and_then(|end| u64::try_from(end).ok());
    resize(fd, end.map(|end| Size::AtLeast(if grows { end } else { 0 })), call)
}

/// What a file's size will be.
enum Size {
    Is(u64),
    AtLeast(u64),
}

/// A change of the size: logged where the file is in the log. `size` is `None` if it is one that the kernel will refuse.
fn resize(fd: c_int, size: Option<Size>, call: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
    match (classify::look_up_or_register(fd, Intent::Write), size) {
        (Kind::Managed(t), Some(size)) if t.writable() => {
            let begun = t.engine.begin(t.who, t.file, sys::borrow(fd));
            let change = match size {
                Size::Is(len) => begun.log_truncate(len),
                Size::AtLeast(end) => begun.log_allocate(end),
            }?;
            let done = if change.is_logged() { call() } else { named::resizing(fd, call) };
            change.finish(done.is_ok());
            done
        }
        (Kind::Kernel | Kind::Managed(_), _) => named::resizing(fd, call),
        (Kind::Watched(watched), _) => {
            let matters = named::engine().is_some() && watched.was_synced(fd);
            let done = if matters { named::resizing(fd, call) } else { call() };
            watched.written();
            done
        }
        (Kind::Nobody, _) => Err(Errno::IO),
    }
}
