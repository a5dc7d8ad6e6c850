//! libc's way of returning: -1 and errno. errno is left alone on success.

use core::ffi::c_int;

use seawall_core::Errno;

/// Sets errno.
pub fn set(errno: Errno) {
    // SAFETY: the address is this thread's errno, valid as long as the thread.
    unsafe { *libc::__errno_location() = errno.raw_os_error() };
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
