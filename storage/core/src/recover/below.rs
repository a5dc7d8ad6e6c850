//! Files below a directory, and nowhere else.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode as FileMode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Opens a regular file below `dir`, never leaving it and never through a link.
pub(super) fn open_below(dir: &File, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(File::from(rustix::fs::openat2(dir, path, flags, FileMode::empty(), resolve)?))
}

/// True if what has no handle that can be compared is on another file system, which is mounted there and has none, or longer ones.
pub(super) fn is_elsewhere(error: &io::Error) -> bool {
    let codes = [Errno::OPNOTSUPP, Errno::OVERFLOW].map(Errno::raw_os_error);
    error.raw_os_error().is_none_or(|code| codes.contains(&code))
}
