//! Files below a directory, and nowhere else.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode as FileMode, OFlags, ResolveFlags};

/// Opens a regular file below `dir`, never leaving it and never through a link.
pub(super) fn open_below(dir: &File, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(File::from(rustix::fs::openat2(dir, path, flags, FileMode::empty(), resolve)?))
}
