//! Owner, mode, times, extended attributes: logged data cannot stand for them, so the file's next fsync is real.
//! libc does the work: some of these have no system call of the same shape.

use core::ffi::{c_char, c_int, c_void};

use libc::{gid_t, mode_t, timespec, timeval, uid_t};

use super::{entry, real_or};
use crate::{app, classify, errno, guard, look, session};

const HERE: c_int = libc::AT_FDCWD;

/// Calls `call` on a path; afterwards its file's next fsync is real.
///
/// # Safety
/// `path` as for the libc function.
unsafe fn named(
    dir: c_int,
    path: *const c_char,
    flags: c_int,
    call: impl Fn(*const c_char) -> c_int,
) -> c_int {
    let look_flags = flags & libc::AT_SYMLINK_NOFOLLOW;
    let change = |path: *const c_char| {
        // SAFETY: the caller's.
        match unsafe { app::path(path) }.and_then(|path| look::at(dir, path, look_flags)) {
            Some(seen) => seen.need_sync(|| call(path)),
            None => call(path),
        }
    };
    // SAFETY: the caller's.
    unsafe { guard::with(dir, path, change) }
}

/// The same on a descriptor.
fn numbered(fd: c_int, call: impl Fn() -> c_int) -> c_int {
    let note = || {
        if !session::is_off() {
            errno::kept(|| classify::need_sync(fd));
        }
    };
    note();
    let done = call();
    note();
    done
}

/// `flags` of the calls that look at the link itself.
const LINK: c_int = libc::AT_SYMLINK_NOFOLLOW;

macro_rules! by_path {
    ($($name:ident $symbol:literal ($path:ident $(, $arg:ident: $kind:ty)*) $dir:expr, $flags:expr;)+) => { entry! {
        $(fn $name ($path: *const c_char $(, $arg: $kind)*) -> c_int {
            named($dir, $path, $flags, |$path| {
                real_or!(-1, $symbol, fn($path: *const c_char $(, $arg: $kind)*) -> c_int)
            })
        })+
    } };
}

macro_rules! by_directory {
    ($($name:ident $symbol:literal ($dir:ident, $path:ident $(, $arg:ident: $kind:ty)*) $flags:expr;)+) => { entry! {
        $(fn $name ($dir: c_int, $path: *const c_char $(, $arg: $kind)*) -> c_int {
            named($dir, $path, $flags, |$path| {
                real_or!(-1, $symbol, fn($dir: c_int, $path: *const c_char $(, $arg: $kind)*) -> c_int)
            })
        })+
    } };
}

macro_rules! by_descriptor {
    ($($name:ident $symbol:literal ($fd:ident $(, $arg:ident: $kind:ty)*);)+) => { entry! {
        $(fn $name ($fd: c_int $(, $arg: $kind)*) -> c_int {
            numbered($fd, || real_or!(-1, $symbol, fn($fd: c_int $(, $arg: $kind)*) -> c_int))
        })+
    } };
}

by_path! {
    chmod c"chmod" (path, mode: mode_t) HERE, 0;
    lchmod c"lchmod" (path, mode: mode_t) HERE, LINK;
    chown c"chown" (path, user: uid_t, group: gid_t) HERE, 0;
    lchown c"lchown" (path, user: uid_t, group: gid_t) HERE, LINK;
    utime c"utime" (path, times: *const c_void) HERE, 0;
    utimes c"utimes" (path, times: *const timeval) HERE, 0;
    lutimes c"lutimes" (path, times: *const timeval) HERE, LINK;
    setxattr c"setxattr" (path, name: *const c_char, value: *const c_void, len: usize, flags: c_int) HERE, 0;
    lsetxattr c"lsetxattr" (path, name: *const c_char, value: *const c_void, len: usize, flags: c_int) HERE, LINK;
    removexattr c"removexattr" (path, name: *const c_char) HERE, 0;
    lremovexattr c"lremovexattr" (path, name: *const c_char) HERE, LINK;
}

by_directory! {
    fchmodat c"fchmodat" (dir, path, mode: mode_t, flags: c_int) flags;
    fchownat c"fchownat" (dir, path, user: uid_t, group: gid_t, flags: c_int) flags;
    futimesat c"futimesat" (dir, path, times: *const timeval) 0;
    utimensat c"utimensat" (dir, path, times: *const timespec, flags: c_int) flags;
}

by_descriptor! {
    fchmod c"fchmod" (fd, mode: mode_t);
    fchown c"fchown" (fd, user: uid_t, group: gid_t);
    futimes c"futimes" (fd, times: *const timeval);
    futimens c"futimens" (fd, times: *const timespec);
    fsetxattr c"fsetxattr" (fd, name: *const c_char, value: *const c_void, len: usize, flags: c_int);
    fremovexattr c"fremovexattr" (fd, name: *const c_char);
}
