//! The one place with unsafe code: reads of the image straight into the guest's memory, and the exchange of an open file for another.

#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};

use seawall_core::Errno;
use vm_memory::bitmap::Bitmap;

use crate::memory::Slice;

/// So many stretches by one call (IOV_MAX).
pub const AT_ONCE: usize = 1024;

/// preadv2(2) into the guest's memory. With `from_cache` only what the page cache has: EAGAIN if that is not the first of it.
///
/// # Errors
/// What the kernel says.
pub fn read_into(fd: BorrowedFd<'_>, at: u64, into: &[Slice<'_>], from_cache: bool) -> Result<usize, Errno> {
    let at = i64::try_from(at).map_err(|_| Errno::INVAL)?;
    let guards: Vec<_> =
        into.iter().take(AT_ONCE).map(|slice| (slice.ptr_guard_mut(), slice.len())).collect();
    let vectors: Vec<libc::iovec> =
        guards.iter().map(|(at, len)| libc::iovec { iov_base: at.as_ptr().cast(), iov_len: *len }).collect();
    let flags = if from_cache { libc::RWF_NOWAIT } else { 0 };
    // SAFETY: each vector is a stretch of the guest's memory that is mapped for writing as long as its slice lives. The guest, and
    // so everybody, may change it meanwhile: nothing here refers to what it holds.
    let done = unsafe { libc::preadv2(fd.as_raw_fd(), vectors.as_ptr(), vectors.len() as i32, at, flags) };
    let done = usize::try_from(done).map_err(|_| last())?;
    mark(into, done);
    Ok(done)
}

/// Has the descriptor of `file` stand for the open file of `by` from now on: for every thread at once, those in the middle of a call
/// aside. What it stood for is closed, and its locks are gone.
///
/// # Errors
/// What the kernel says.
pub fn replace(file: &File, by: &File) -> Result<(), Errno> {
    // SAFETY: both are open, and the number stays an open descriptor of its owner's.
    let done = unsafe { libc::dup3(by.as_raw_fd(), file.as_raw_fd(), libc::O_CLOEXEC) };
    if done < 0 { Err(last()) } else { Ok(()) }
}

fn last() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// So many bytes of these were written by the kernel.
fn mark(slices: &[Slice<'_>], mut done: usize) {
    for slice in slices {
        let written = done.min(slice.len());
        slice.bitmap().mark_dirty(0, written);
        done -= written;
    }
}
