//! What needs `unsafe`: a fanotify group that was inherited, and a call that nix does not have.

#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use nix::libc;
use nix::sys::fanotify::Fanotify;

/// The fanotify group behind a descriptor; `None` if it is something else.
pub(crate) fn fanotify(fd: OwnedFd) -> Option<Fanotify> {
    let what = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
    // SAFETY: the kernel has just said that this open descriptor is a fanotify group.
    (what.as_os_str() == "anon_inode:[fanotify]").then(|| unsafe { Fanotify::from_owned_fd(fd) })
}

/// Takes (F_WRLCK) or gives back (F_UNLCK) a lease, fcntl(2). False if the kernel says no.
pub(crate) fn lease(fd: BorrowedFd<'_>, kind: i32) -> bool {
    // SAFETY: a call on an open descriptor, with an integer argument.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETLEASE, kind) == 0 }
}
