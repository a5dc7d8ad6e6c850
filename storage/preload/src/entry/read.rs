//! pread, preadv, preadv2: the block cache is looked at first.
//!
//! read and readv are the kernel's: where they read belongs to the open file, which other threads and processes may
//! share, and nothing but the kernel moves it as one step with the read.

use core::ffi::{c_int, c_void};

use libc::iovec;
use seawall_core::Errno;

use super::{point, real_or};
use crate::cached::{self, Wanted};
use crate::sys::unsafe_call;
use crate::{app, errno};

point! {
    fn pread | pread64 | __pread64 (fd: c_int, into: *mut c_void, len: usize, offset: i64) -> isize,
        passes if { cached::is_read_past(fd) }
    {
        errno::long(at(fd, into, len, offset))
    }

    fn __pread_chk | __pread64_chk (fd: c_int, into: *mut c_void, len: usize, offset: i64, room: usize) -> isize {
        if len > room {
            // Ends the process, and says why.
            return real_or!(-1, c"__pread_chk",
                fn(fd: c_int, into: *mut c_void, len: usize, offset: i64, room: usize) -> isize);
        }
        errno::long(at(fd, into, len, offset))
    }

    fn preadv | preadv64 (fd: c_int, iov: *const iovec, count: c_int, offset: i64) -> isize,
        passes if { cached::is_read_past(fd) }
    {
        errno::long(vector_at(fd, iov, count, offset))
    }

    fn preadv2 | preadv64v2 (fd: c_int, iov: *const iovec, count: c_int, offset: i64, flags: c_int) -> isize,
        passes if { cached::is_read_past(fd) }
    {
        errno::long(vector(fd, iov, count, offset, flags))
    }
}

/// pread(2).
///
/// # Safety
/// As pread(2), for this and the following.
#[inline]
pub unsafe fn at(fd: c_int, into: *mut c_void, len: usize, offset: i64) -> Result<usize, Errno> {
    let memory = core::iter::once(iovec { iov_base: into, iov_len: len });
    // SAFETY: the caller's.
    match unsafe { cached::read(Wanted { fd, offset, len }, memory) } {
        Some(done) => done,
        None => unsafe_call!(SYS_pread64, fd, into, len, offset),
    }
}

/// preadv(2).
pub unsafe fn vector_at(fd: c_int, iov: *const iovec, count: c_int, offset: i64) -> Result<usize, Errno> {
    // SAFETY: the caller's.
    match unsafe { through(fd, iov, count, offset) } {
        Some(done) => done,
        None => unsafe_call!(SYS_preadv, fd, iov, count, offset, 0),
    }
}

/// preadv2(2); any flag makes it the kernel's.
pub unsafe fn vector(
    fd: c_int,
    iov: *const iovec,
    count: c_int,
    offset: i64,
    flags: c_int,
) -> Result<usize, Errno> {
    // SAFETY: the caller's.
    let done = if flags == 0 { unsafe { through(fd, iov, count, offset) } } else { None };
    done.unwrap_or_else(|| unsafe_call!(SYS_preadv2, fd, iov, count, offset, 0, flags))
}

unsafe fn through(fd: c_int, iov: *const iovec, count: c_int, offset: i64) -> Option<Result<usize, Errno>> {
    if !cached::may_be() {
        return None;
    }
    // SAFETY: the caller's.
    let pieces = unsafe { app::pieces(iov, count) }?;
    let len = pieces.iter().map(|piece| piece.iov_len).sum();
    // SAFETY: the caller's.
    unsafe { cached::read(Wanted { fd, offset, len }, pieces.iter().copied()) }
}
