//! What a sync's success is worth.
//!
//! ext4 reports a failed commit of its journal only to the callers that wait for that very commit. A sync that comes
//! later finds the commit over and succeeds (`jbd2_complete_transaction`), although a size or a new block that it
//! should have made durable is lost. This goes on until something else wants to change metadata and finds ext4's
//! journal dead. The database may have seen the error on another file, or nobody has. Records must not be retired on
//! the strength of such a success, so the code that retires them asks for a change of metadata as well.

use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, fstatfs, futimens};
use seawall_media::{magic, sim};

use rustix::io::Errno;

/// fdatasync(2), and then [`check`].
///
/// # Errors
/// The kernel's error; EIO if the file system's journal is dead.
pub fn fdatasync(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    match sim::syncs(fd.as_raw_fd()) {
        None => rustix::fs::fdatasync(fd)?,
        Some(simulated) => simulated.map_err(Errno::from_raw_os_error)?,
    }
    check(fd)
}

/// Call this after a sync that succeeded, before the sync retires records. It costs some microseconds and sets the
/// file's access time to now. Without the right to set that time (the file is another user's), it finds nothing out.
///
/// # Errors
/// EIO if the file system's journal is dead: the sync proves nothing.
pub fn check(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    if let Some(simulated) = sim::confirms(fd.as_raw_fd()) {
        return simulated.map_err(Errno::from_raw_os_error);
    }
    if fstatfs(fd)?.f_type as u64 != magic::EXT4 {
        return Ok(());
    }
    // The first touch makes ext4 find out, and may itself succeed; the second one is refused.
    touch(fd).and_then(|()| touch(fd))
}

fn touch(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    let time = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let times = Timestamps { last_access: time(UTIME_NOW), last_modification: time(UTIME_OMIT) };
    match futimens(fd, &times) {
        Err(Errno::IO | Errno::ROFS) => Err(Errno::IO),
        _ => Ok(()),
    }
}
