//! fsync, fdatasync: absorbed for a tracked file. sync, syncfs and msync are the kernel's: an untracked file has no
//! live records, and a tracked one has everything in the log, which is hardened first where that takes a device.
//! sync_file_range is libc's own: it promises nothing after a power cut. A directory in which nothing changed since it was
//! synced is not synced again.

use core::ffi::{c_int, c_void};

use seawall_core::directory::Synced;
use seawall_core::{Errno, Scope};

use super::{entry, point};
use crate::classify::{self, Intent, Kind};
use crate::sys::unsafe_call;
use crate::{cached, errno, journal, session, strays, sys};

static DIRECTORIES: Synced = Synced::new();

point! {
    fn fsync (fd: c_int) -> c_int { errno::zero(durable(fd, Scope::Whole)) }

    fn fdatasync (fd: c_int) -> c_int { errno::zero(durable(fd, Scope::Data)) }

    fn msync (at: *mut c_void, len: usize, flags: c_int) -> c_int { errno::int(mapping(at, len, flags)) }
}

entry! {
    fn sync () { everything() }

    fn syncfs (fd: c_int) -> c_int { errno::int(file_system(fd)) }
}

/// fsync(2) or fdatasync(2).
#[inline]
pub fn durable(fd: c_int, scope: Scope) -> Result<(), Errno> {
    match classify::look_up_or_register(fd, Intent::Sync) {
        Kind::Managed(target) => target.sync(fd, scope),
        Kind::Kernel | Kind::Watched(_) | Kind::Nobody => cached::sync(fd, || unmanaged(fd, scope)),
    }
}

/// Of a directory it may have been made before.
fn unmanaged(fd: c_int, scope: Scope) -> Result<(), Errno> {
    let real = |scope| sys::sync(fd, scope);
    strays::note(fd);
    match session::joined().filter(|_| fd >= 0) {
        Some(engine) => {
            // The removal of a journal may be a record, which a sync of its directory makes durable.
            if engine.pool().journal().is_some() && sys::fstat(fd).is_ok_and(|stat| !stat.regular) {
                journal::harden_all()?;
            }
            DIRECTORIES.sync(engine.shm().header().clock(), sys::borrow(fd), scope, real)
        }
        None => real(scope),
    }
}

/// sync(2), which cannot fail.
pub fn everything() {
    if journal::harden_all().is_err() {
        sys::say(&["sync: what is in the log could not be made durable; the daemon's log says why"]);
    }
    let _ = unsafe_call!(SYS_sync);
}

/// syncfs(2).
pub fn file_system(fd: c_int) -> Result<usize, Errno> {
    journal::harden_all()?;
    unsafe_call!(SYS_syncfs, fd)
}

/// msync(2).
pub fn mapping(at: *mut c_void, len: usize, flags: c_int) -> Result<usize, Errno> {
    if flags & libc::MS_SYNC != 0 {
        journal::harden_all()?;
    }
    unsafe_call!(SYS_msync, at, len, flags)
}
