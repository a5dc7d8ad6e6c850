//! fsync, fdatasync: absorbed for a tracked file. sync, syncfs and msync are the kernel's: an untracked file has no
//! live records, and a tracked one has everything in the log, which is hardened first where that takes a device.
//! sync_file_range promises nothing after a power cut: what it would have the disk write now, destaging writes once, so for a
//! tracked file it has nothing to do. A directory in which nothing changed since it was synced is not synced again; one whose names are in the log, and a small file in it that is new, have nothing to wait for
//! (`named`).

use core::ffi::{c_int, c_uint, c_void};

use seawall_core::directory::{State, Synced};
use seawall_core::{Errno, Scope};

use super::{entry, point};
use crate::classify::{self, Intent, Kind};
use crate::client::DAEMON;
use crate::sys::{Stat, unsafe_call};
use crate::{cached, errno, journal, named, session, strays, sys, unsynced};

static DIRECTORIES: Synced = Synced::new();

point! {
    fn fsync (fd: c_int) -> c_int { errno::zero(durable(fd, Scope::Whole)) }

    fn fdatasync (fd: c_int) -> c_int { errno::zero(durable(fd, Scope::Data)) }

    fn sync_file_range (fd: c_int, offset: i64, len: i64, flags: c_uint) -> c_int {
        errno::int(range(fd, offset, len, flags))
    }

    fn msync (at: *mut c_void, len: usize, flags: c_int) -> c_int { errno::int(mapping(at, len, flags)) }
}

entry! {
    fn sync () { everything() }

    fn syncfs (fd: c_int) -> c_int { errno::int(file_system(fd)) }
}

/// fsync(2) or fdatasync(2).
#[inline]
pub fn durable(fd: c_int, scope: Scope) -> Result<(), Errno> {
    if named::joining().is_some() && named::first_sync(fd) {
        return Ok(());
    }
    match classify::look_up_or_register(fd, Intent::Sync) {
        Kind::Managed(target) => target.sync(fd, scope),
        Kind::Watched(watched) => cached::sync(fd, || unmanaged(fd, watched.stat(), scope)),
        Kind::Kernel | Kind::Nobody => cached::sync(fd, || unmanaged(fd, None, scope)),
    }
}

/// Of a directory it may have been made before. `stat`: what it is, as far as that was looked at.
fn unmanaged(fd: c_int, stat: Option<Stat>, scope: Scope) -> Result<(), Errno> {
    let real = |scope| sys::sync(fd, scope);
    let stat = session::joined().and_then(|_| stat.or_else(|| sys::fstat(fd).ok()));
    if let Some(done) = stat.as_ref().and_then(|stat| named::sync_directory(fd, stat)) {
        return done;
    }
    stat.inspect(|stat| strays::note(fd, stat));
    match session::joined().filter(|_| fd >= 0) {
        Some(engine) => {
            // The removal of a journal may be a record, which a sync of its directory makes durable.
            if engine.pool().journal().is_some() && stat.is_some_and(|stat| !stat.regular) {
                journal::harden_all()?;
            }
            match stat {
                Some(stat) if stat.directory => {
                    let state = State { dev: stat.dev, ino: stat.ino, changed: stat.changed };
                    let clock = engine.shm().header().clock();
                    DIRECTORIES.sync_as(clock, (sys::borrow(fd), state), scope, real)
                }
                Some(stat) => {
                    let since = named::next_lsn();
                    unsynced::sync(engine, fd, || real(scope))?;
                    named::synced_for_real(engine, fd, &stat);
                    named::settle(fd, &stat, Some(since))
                }
                None => real(scope),
            }
        }
        None => real(scope),
    }
}

/// sync(2), which cannot fail.
pub fn everything() {
    if journal::harden_all().is_err() {
        sys::say(&["sync: the records in the log could not be made durable; the daemon's log says why"]);
    }
    named::settle_all();
    let _ = unsafe_call!(SYS_sync);
}

/// syncfs(2). PostgreSQL's crash recovery calls it for its directory, to have what is below it on the disk. Most of that is in
/// the log.
pub fn file_system(fd: c_int) -> Result<usize, Errno> {
    journal::harden_all()?;
    named::settle_all();
    if session::joined().is_some() && fd >= 0 && DAEMON.sync_tree(sys::borrow(fd)) {
        return Ok(0);
    }
    unsafe_call!(SYS_syncfs, fd)
}

/// sync_file_range(2). PostgreSQL's checkpoints, and the start of its crash recovery, call it for every few pages.
pub fn range(fd: c_int, offset: i64, len: i64, flags: c_uint) -> Result<usize, Errno> {
    const ALL: c_uint =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    let is_right = flags & !ALL == 0 && offset >= 0 && len >= 0 && offset.checked_add(len).is_some();
    match classify::look_up_or_register(fd, Intent::Ask) {
        Kind::Managed(target) if is_right && target.is_tracked() => Ok(0),
        _ => unsafe_call!(SYS_sync_file_range, fd, offset, len, flags),
    }
}

/// msync(2).
pub fn mapping(at: *mut c_void, len: usize, flags: c_int) -> Result<usize, Errno> {
    if flags & libc::MS_SYNC != 0 {
        journal::harden_all()?;
    }
    unsafe_call!(SYS_msync, at, len, flags)
}
