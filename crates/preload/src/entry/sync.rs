//! fsync, fdatasync: absorbed for a tracked file. sync, syncfs, sync_file_range and msync are libc's own: an
//! untracked file has no live records, and a tracked one has everything in the log.

use core::ffi::c_int;

use seawall_core::Errno;

use super::entry;
use crate::classify::{self, Intent, Kind};
use crate::{errno, sys};

entry! {
    fn fsync (fd: c_int) -> c_int { errno::zero(durable(fd, sys::fsync)) }

    fn fdatasync (fd: c_int) -> c_int { errno::zero(durable(fd, sys::fdatasync)) }
}

/// `real` is fsync(2) or fdatasync(2).
#[inline]
pub fn durable(fd: c_int, real: fn(c_int) -> Result<(), Errno>) -> Result<(), Errno> {
    match classify::of(fd, Intent::Sync) {
        Kind::Managed(target) => target.sync(fd, real),
        Kind::Kernel | Kind::Watched(_) | Kind::Poisoned => real(fd),
    }
}
