//! Streams: libc writes them from inside, where nothing can be seen. A managed file opened for writing as a
//! stream stays out of the log until the stream is closed.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;

use libc::FILE;
use seawall_core::FileRef;

use super::origin::fresh;
use super::{entry, point, real_or};
use crate::classify::{self, Intent, Kind};
use crate::holds::{self, Why};
use crate::look::{self, Seen};
use crate::real::real;
use crate::{app, cached, errno, fdtable, guard, named, owner, session, sys};

const HERE: c_int = libc::AT_FDCWD;

point! {
    fn fopen | fopen64 | _IO_fopen (path: *const c_char, mode: *const c_char) -> *mut FILE,
        passes if { is_simple(path, mode) } then |stream| { opened(stream, mode) }
    {
        guard::acting(HERE, path, |led| {
            let path = led.path();
            let call = || led.act(|| {
                real_or!(null_mut(), c"fopen", fn(path: *const c_char, mode: *const c_char) -> *mut FILE)
            });
            open(path, mode, || match app::path(path).filter(|_| makes(mode)) {
                Some(name) => named::making(HERE, name, |_, _| Ok(call())).unwrap_or_else(|error| {
                    errno::set(error);
                    null_mut()
                }),
                None => call(),
            })
        })
    }

    fn freopen | freopen64 (path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE,
        passes if { is_simple(path, mode) && is_forgotten(stream) } then |stream| { opened(stream, mode) }
    {
        guard::once(HERE, path, |path| {
            let before = number(stream);
            let opened = open(path, mode, || {
                cached::closed(stream as usize, || real_or!(null_mut(), c"freopen",
                    fn(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE))
            });
            before.inspect(|fd| fdtable::reset(*fd));
            opened
        })
    }

    fn fclose | _IO_fclose (stream: *mut FILE) -> c_int,
        passes if { is_forgotten(stream) } then |_done| { holds::closed(stream as usize) }
    {
        close(stream)
    }
}

entry! {
    fn pclose (stream: *mut FILE) -> c_int {
        number(stream).inspect(|fd| fdtable::reset(*fd));
        real_or!(-1, c"pclose", fn(stream: *mut FILE) -> c_int)
    }

    fn fdopen | _IO_fdopen (fd: c_int, mode: *const c_char) -> *mut FILE {
        let held = if writes(mode) { hold(fd) } else { None };
        let stream = real_or!(null_mut(), c"fdopen", fn(fd: c_int, mode: *const c_char) -> *mut FILE);
        remember(stream, held);
        if writes(mode) {
            cached::stream(stream as usize, fd);
        }
        stream
    }

    fn backtrace_symbols_fd | __backtrace_symbols_fd (addresses: *const *mut c_void, n: c_int, fd: c_int) {
        classify::hold_for_life(fd);
        real_or!((), c"backtrace_symbols_fd", fn(addresses: *const *mut c_void, n: c_int, fd: c_int) -> ())
    }

    fn tmpfile | tmpfile64 () -> *mut FILE { real_or!(null_mut(), c"tmpfile", fn() -> *mut FILE) }
}

/// fclose(3).
///
/// # Safety
/// As fclose(3).
unsafe fn close(stream: *mut FILE) -> c_int {
    number(stream).inspect(|fd| fdtable::reset(*fd));
    // SAFETY: the caller's.
    let close = || unsafe { real_or!(-1, c"fclose", fn(stream: *mut FILE) -> c_int) };
    let done = cached::closed(stream as usize, close);
    holds::closed(stream as usize);
    done
}

/// True if the open can be libc's alone: nothing is written through the stream, or what is there is no file.
///
/// # Safety
/// As fopen(3).
unsafe fn is_simple(path: *const c_char, mode: *const c_char) -> bool {
    if session::is_off() {
        return true;
    }
    let is_special = |name| sys::fstatat(HERE, name, 0).is_ok_and(|stat| !stat.regular);
    // SAFETY: the caller's, for all of them.
    unsafe { guard::stays_clear_of(HERE, path) && (!writes(mode) || app::path(path).is_some_and(is_special)) }
}

/// Libc's own open has made `stream`.
///
/// # Safety
/// As above.
unsafe fn opened(stream: *mut FILE, mode: *const c_char) {
    number(stream).inspect(|fd| classify::opened(*fd));
    // SAFETY: the caller's.
    if session::is_off() || !unsafe { writes(mode) } {
        return;
    }
    let held = number(stream).and_then(|fd| {
        fresh(fd);
        cached::stream(stream as usize, fd);
        hold(fd)
    });
    remember(stream, held);
}

/// True if the block cache need not see the stream's end; then its descriptor's number is forgotten.
fn is_forgotten(stream: *mut FILE) -> bool {
    let is_unknown = !cached::is_stream(stream as usize);
    if is_unknown {
        number(stream).inspect(|fd| fdtable::reset(*fd));
    }
    is_unknown
}

/// Opens a stream: the file is out of the log before libc can truncate or write it.
unsafe fn open(path: *const c_char, mode: *const c_char, call: impl FnOnce() -> *mut FILE) -> *mut FILE {
    // SAFETY: the caller has a C string or null, as for fopen(3).
    if session::is_off() || !unsafe { writes(mode) } {
        let stream = call();
        number(stream).inspect(|fd| classify::opened(*fd));
        return stream;
    }
    // SAFETY: as above.
    let seen = unsafe { app::path(path) }.and_then(|path| look::at(HERE, path, 0));
    seen.as_ref().inspect(|seen| seen.hold());
    // SAFETY: as above.
    let name = unsafe { app::path(path) };
    // It may be truncated.
    let stream = cached::change_named(HERE, name, 0, call);
    // SAFETY: as above.
    unsafe { opened(stream, mode) };
    seen.inspect(Seen::release);
    stream
}

impl Seen {
    fn release(&self) {
        self.engine.release(self.who, self.file);
    }
}

/// True if a stream of this mode can write. A null mode is libc's problem.
/// True if it makes a file where none is.
///
/// # Safety
/// As for [`writes`].
unsafe fn makes(mode: *const c_char) -> bool {
    // SAFETY: the caller's; not null, since something is written by it.
    unsafe { writes(mode) && !CStr::from_ptr(mode).to_bytes().starts_with(b"r") }
}

unsafe fn writes(mode: *const c_char) -> bool {
    if mode.is_null() {
        return false;
    }
    // SAFETY: a mode is a C string.
    let mode = unsafe { CStr::from_ptr(mode) }.to_bytes();
    mode.iter().take_while(|c| **c != b',').any(|c| matches!(c, b'w' | b'a' | b'+'))
}

/// Takes a hold on a managed file.
fn hold(fd: c_int) -> Option<FileRef> {
    match classify::look_up_or_register(fd, Intent::Hold) {
        Kind::Managed(target) if target.writable() => {
            target.hold(fd);
            Some(target.file)
        }
        _ => None,
    }
}

/// Ties a hold to its stream, or ends it if there is none.
fn remember(stream: *mut FILE, held: Option<FileRef>) {
    let Some(file) = held else { return };
    if !stream.is_null() {
        holds::held(Why::Stream(stream as usize), file);
    } else if let Some(engine) = session::joined()
        && let Some(who) = owner::current(engine)
    {
        engine.release(who, file);
    }
}

/// The descriptor of a stream, by libc's own function: ours would forget it.
fn number(stream: *mut FILE) -> Option<c_int> {
    if stream.is_null() || session::is_off() {
        return None;
    }
    let fileno = real!(c"fileno", fn(*mut FILE) -> c_int)?;
    // SAFETY: a stream of the application, alive for its call.
    let fd = errno::kept(|| unsafe { fileno(stream) });
    (fd >= 0).then_some(fd)
}
