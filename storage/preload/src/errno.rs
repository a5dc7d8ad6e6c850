//! libc's way of returning: -1 and errno. errno is left alone on success.

use core::ffi::c_int;

use seawall_core::Errno;

/// Sets errno.
pub fn set(errno: Errno) {
    // SAFETY: the address is this thread's errno, valid as long as the thread.
    unsafe { *libc::__errno_location() = errno.raw_os_error() };
}

/// Runs `call` and puts errno back as it was.
pub fn kept<R>(call: impl FnOnce() -> R) -> R {
    // SAFETY: as in `set`.
    let at = unsafe { libc::__errno_location() };
    // SAFETY: as in `set`, and for the store below.
    let before = unsafe { *at };
    let result = call();
    // SAFETY: the same thread, the same address.
    unsafe { *at = before };
    result
}

/// A count, or -1 with errno set.
#[inline]
pub fn long(result: Result<usize, Errno>) -> isize {
    match result {
        Ok(n) => n as isize,
        Err(e) => {
            set(e);
            -1
        }
    }
}

/// A small number (descriptor, 0), or -1 with errno set.
#[inline]
pub fn int(result: Result<usize, Errno>) -> c_int {
    long(result) as c_int
}

/// 0, or -1 with errno set.
#[inline]
pub fn zero(result: Result<(), Errno>) -> c_int {
    long(result.map(|()| 0)) as c_int
}
