//! The one thing that needs `unsafe`: a fanotify group that was inherited.

#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::fanotify::Fanotify;

/// The fanotify group behind a descriptor; `None` if it is something else.
pub(crate) fn fanotify(fd: OwnedFd) -> Option<Fanotify> {
    let what = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
    // SAFETY: the kernel has just said that this open descriptor is a fanotify group.
    (what.as_os_str() == "anon_inode:[fanotify]").then(|| unsafe { Fanotify::from_owned_fd(fd) })
}
