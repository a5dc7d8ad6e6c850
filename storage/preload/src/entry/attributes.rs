//! Owner, mode, times, extended attributes: logged data cannot stand for them, so the file's next fsync is real.
//! libc does the work: some of these have no system call of the same shape.

use core::ffi::{c_char, c_int, c_void};

use libc::{gid_t, mode_t, timespec, timeval, uid_t};

use super::{entry, real_or};
use crate::guard::Led;
use crate::look::{self, Owners};
use crate::{app, classify, errno, guard, session, sys};

const HERE: c_int = libc::AT_FDCWD;

/// No change of the owner.
const SAME: Owners = (uid_t::MAX, gid_t::MAX);

/// Calls `call` on a path, with `owners` as for chown(2); afterwards its file's next fsync is real.
///
/// # Safety
/// `path` as for the libc function.
unsafe fn named(
    dir: c_int,
    path: *const c_char,
    flags: c_int,
    owners: Owners,
    call: impl Fn(*const c_char) -> c_int,
) -> c_int {
    let look_flags = flags & libc::AT_SYMLINK_NOFOLLOW;
    let change = |led: Led| {
        let call = || led.act(|| call(led.path()));
        // SAFETY: the caller's.
        match unsafe { app::path(led.path()) }.and_then(|path| look::at(dir, path, look_flags)) {
            Some(seen) => seen.own(owners, call),
            None => call(),
        }
    };
    // SAFETY: the caller's.
    unsafe { guard::acting(dir, path, change) }
}

/// The same on a descriptor.
fn numbered(fd: c_int, owners: Owners, call: impl Fn() -> c_int) -> c_int {
    if session::is_off() {
        return call();
    }
    if owners.0 != SAME.0 {
        // SQLite as root does this to its journal in each transaction.
        let is_owned_already = |stat: sys::Stat| stat.is_owned_already(owners.0, owners.1);
        if errno::kept(|| sys::fstat(fd)).is_ok_and(is_owned_already) {
            return call();
        }
        if let Some(seen) = errno::kept(|| look::behind(fd)) {
            return seen.own(owners, call);
        }
    }
    let note = || errno::kept(|| classify::disturb(fd));
    note();
    let done = call();
    note();
    done
}

/// `flags` of the calls that look at the link itself.
const LINK: c_int = libc::AT_SYMLINK_NOFOLLOW;

macro_rules! by_path {
    ($($name:ident $symbol:literal ($path:ident $(, $arg:ident: $kind:ty)*) $dir:expr, $flags:expr, $owners:expr;)+) => { entry! {
        $(fn $name ($path: *const c_char $(, $arg: $kind)*) -> c_int {
            named($dir, $path, $flags, $owners, |$path| {
                real_or!(-1, $symbol, fn($path: *const c_char $(, $arg: $kind)*) -> c_int)
            })
        })+
    } };
}

macro_rules! by_directory {
    ($($name:ident $symbol:literal ($dir:ident, $path:ident $(, $arg:ident: $kind:ty)*) $flags:expr, $owners:expr;)+) => { entry! {
        $(fn $name ($dir: c_int, $path: *const c_char $(, $arg: $kind)*) -> c_int {
            named($dir, $path, $flags, $owners, |$path| {
                real_or!(-1, $symbol, fn($dir: c_int, $path: *const c_char $(, $arg: $kind)*) -> c_int)
            })
        })+
    } };
}

macro_rules! by_descriptor {
    ($($name:ident $symbol:literal ($fd:ident $(, $arg:ident: $kind:ty)*) $owners:expr;)+) => { entry! {
        $(fn $name ($fd: c_int $(, $arg: $kind)*) -> c_int {
            numbered($fd, $owners, || real_or!(-1, $symbol, fn($fd: c_int $(, $arg: $kind)*) -> c_int))
        })+
    } };
}

by_path! {
    chmod c"chmod" (path, mode: mode_t) HERE, 0, SAME;
    lchmod c"lchmod" (path, mode: mode_t) HERE, LINK, SAME;
    chown c"chown" (path, user: uid_t, group: gid_t) HERE, 0, (user, group);
    lchown c"lchown" (path, user: uid_t, group: gid_t) HERE, LINK, (user, group);
    utime c"utime" (path, times: *const c_void) HERE, 0, SAME;
    utimes c"utimes" (path, times: *const timeval) HERE, 0, SAME;
    lutimes c"lutimes" (path, times: *const timeval) HERE, LINK, SAME;
    setxattr c"setxattr" (path, name: *const c_char, value: *const c_void, len: usize, flags: c_int) HERE, 0, SAME;
    lsetxattr c"lsetxattr" (path, name: *const c_char, value: *const c_void, len: usize, flags: c_int) HERE, LINK, SAME;
    removexattr c"removexattr" (path, name: *const c_char) HERE, 0, SAME;
    lremovexattr c"lremovexattr" (path, name: *const c_char) HERE, LINK, SAME;
}

by_directory! {
    fchmodat c"fchmodat" (dir, path, mode: mode_t, flags: c_int) flags, SAME;
    fchownat c"fchownat" (dir, path, user: uid_t, group: gid_t, flags: c_int) flags, (user, group);
    futimesat c"futimesat" (dir, path, times: *const timeval) 0, SAME;
    utimensat c"utimensat" (dir, path, times: *const timespec, flags: c_int) flags, SAME;
}

by_descriptor! {
    fchmod c"fchmod" (fd, mode: mode_t) SAME;
    fchown c"fchown" (fd, user: uid_t, group: gid_t) (user, group);
    futimes c"futimes" (fd, times: *const timeval) SAME;
    futimens c"futimens" (fd, times: *const timespec) SAME;
    fsetxattr c"fsetxattr" (fd, name: *const c_char, value: *const c_void, len: usize, flags: c_int) SAME;
    fremovexattr c"fremovexattr" (fd, name: *const c_char) SAME;
}
