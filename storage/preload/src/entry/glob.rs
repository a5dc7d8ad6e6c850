//! glob(3). Libc reads the directories by functions of its own, unless it is given others: those that leave guards out.

use core::ffi::{c_char, c_int, c_void};

use libc::{AT_FDCWD, AT_SYMLINK_NOFOLLOW, DIR, dirent64};

use super::{directory, entry, look_aside, real_or};
use crate::session;

/// The functions in [`Found`] are to be used.
const GLOB_ALTDIRFUNC: c_int = 1 << 9;

/// What was found, as `glob.h` has it.
#[repr(C)]
struct Found {
    count: usize,
    paths: *mut *mut c_char,
    offset: usize,
    flags: c_int,
    functions: Functions,
}

/// What libc reads directories by.
#[derive(Clone, Copy)]
#[repr(C)]
struct Functions {
    close: unsafe extern "C" fn(*mut c_void),
    read: unsafe extern "C" fn(*mut c_void) -> *mut dirent64,
    open: unsafe extern "C" fn(*const c_char) -> *mut c_void,
    lstat: unsafe extern "C" fn(*const c_char, *mut libc::stat) -> c_int,
    stat: unsafe extern "C" fn(*const c_char, *mut libc::stat) -> c_int,
}

/// A program's own may be uninitialised.
type Unknown = core::mem::MaybeUninit<Functions>;

entry! {
    fn glob | glob64 (pattern: *const c_char, flags: c_int, failed: *const c_void, found: *mut Found) -> c_int {
        let go = |flags, found| real_or!(libc::GLOB_ABORTED, c"glob",
            fn(pattern: *const c_char, flags: c_int, failed: *const c_void, found: *mut Found) -> c_int);
        if session::is_off() || flags & GLOB_ALTDIRFUNC != 0 {
            return go(flags, found);
        }
        let place = (&raw mut (*found).functions).cast::<Unknown>();
        let before = place.read();
        place.write(Unknown::new(OURS));
        let answer = go(flags | GLOB_ALTDIRFUNC, found);
        place.write(before);
        (*found).flags &= !GLOB_ALTDIRFUNC;
        answer
    }
}

const OURS: Functions = Functions { close, read, open, lstat, stat };

unsafe extern "C" fn open(path: *const c_char) -> *mut c_void {
    // SAFETY: libc's argument.
    unsafe { real_or!(core::ptr::null_mut(), c"opendir", fn(path: *const c_char) -> *mut c_void) }
}

unsafe extern "C" fn close(stream: *mut c_void) {
    // SAFETY: `open` has opened it.
    unsafe { real_or!(-1, c"closedir", fn(stream: *mut c_void) -> c_int) };
}

unsafe extern "C" fn read(stream: *mut c_void) -> *mut dirent64 {
    // SAFETY: `open` has opened it.
    unsafe { directory::next(stream.cast::<DIR>()) }
}

unsafe extern "C" fn lstat(path: *const c_char, into: *mut libc::stat) -> c_int {
    // SAFETY: libc's arguments, for this and the next one.
    unsafe { look_aside::status(AT_FDCWD, path, into, AT_SYMLINK_NOFOLLOW) }
}

unsafe extern "C" fn stat(path: *const c_char, into: *mut libc::stat) -> c_int {
    // SAFETY: as above.
    unsafe { look_aside::status(AT_FDCWD, path, into, 0) }
}
