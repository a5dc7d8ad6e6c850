//! Calls that only look at a path. They change nothing; they are here because a guard may stand at the path.

use core::ffi::{c_char, c_int, c_uint};

use libc::{AT_FDCWD, AT_SYMLINK_NOFOLLOW};

use super::{entry, real_or};
use crate::sys::unsafe_call;
use crate::{errno, guard};

entry! {
    fn stat | stat64 (path: *const c_char, into: *mut libc::stat) -> c_int { status(AT_FDCWD, path, into, 0) }
    fn lstat | lstat64 (path: *const c_char, into: *mut libc::stat) -> c_int {
        status(AT_FDCWD, path, into, AT_SYMLINK_NOFOLLOW)
    }
    fn fstatat | fstatat64 (dir: c_int, path: *const c_char, into: *mut libc::stat, flags: c_int) -> c_int {
        status(dir, path, into, flags)
    }
    fn __xstat | __xstat64 (_version: c_int, path: *const c_char, into: *mut libc::stat) -> c_int {
        status(AT_FDCWD, path, into, 0)
    }
    fn __lxstat | __lxstat64 (_version: c_int, path: *const c_char, into: *mut libc::stat) -> c_int {
        status(AT_FDCWD, path, into, AT_SYMLINK_NOFOLLOW)
    }
    fn __fxstatat | __fxstatat64 (
        _version: c_int, dir: c_int, path: *const c_char, into: *mut libc::stat, flags: c_int
    ) -> c_int {
        status(dir, path, into, flags)
    }
    fn statx (dir: c_int, path: *const c_char, flags: c_int, mask: c_uint, into: *mut libc::statx) -> c_int {
        guard::looking(dir, path, |path| {
            real_or!(-1, c"statx",
                fn(dir: c_int, path: *const c_char, flags: c_int, mask: c_uint, into: *mut libc::statx) -> c_int)
        })
    }
    fn access (path: *const c_char, mode: c_int) -> c_int {
        guard::looking(AT_FDCWD, path, |path| errno::int(unsafe_call!(SYS_faccessat, AT_FDCWD, path, mode)))
    }
    fn faccessat (dir: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int {
        guard::looking(dir, path, |path| {
            real_or!(-1, c"faccessat", fn(dir: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int)
        })
    }
    fn euidaccess | eaccess (path: *const c_char, mode: c_int) -> c_int {
        guard::looking(AT_FDCWD, path, |path| {
            real_or!(-1, c"euidaccess", fn(path: *const c_char, mode: c_int) -> c_int)
        })
    }
}

/// fstatat(2).
///
/// # Safety
/// As fstatat(2).
pub unsafe fn status(dir: c_int, path: *const c_char, into: *mut libc::stat, flags: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        guard::looking(dir, path, |path| errno::int(unsafe_call!(SYS_newfstatat, dir, path, into, flags)))
    }
}
