//! Which directories the daemon is asked for, and when; and their syncs.

use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use seawall_core::format::NAME_MAX;
use seawall_core::naming::LARGEST;
use seawall_core::{Engine, Errno, policy};

use super::here::{engine, found, here, parent, path_of_any, with_open};
use crate::client::DAEMON;
use crate::session;
use crate::sys::{self, Stat, unsafe_call};

/// So many small new files are synced for real before their directory is asked for.
const SYNCS: u32 = 2;

/// The directory whose names cannot be in the log, as the daemon said.
static REFUSED: AtomicU64 = AtomicU64::new(0);
/// The device that one is on: where the order of names is not kept no directory of it is asked for because of its files. That
/// costs speed at most, as their syncs are real. Whoever counts on the order of names asks all the same.
static REFUSED_ON: AtomicU64 = AtomicU64::new(0);
/// The directory in which small files were synced for real, and how many.
static SYNCED_IN: AtomicU64 = AtomicU64::new(0);
static SYNCED: AtomicU32 = AtomicU32::new(0);

/// fsync(2) or fdatasync(2) of `fd`, if that is a directory in the log, or one that may be.
pub fn sync_directory(fd: c_int, stat: &Stat) -> Option<Result<(), Errno>> {
    let engine = session::joined().filter(|_| stat.directory)?;
    let take_new = || DAEMON.register_new(sys::borrow(fd));
    if engine.find(stat.dev, stat.ino).is_none() && !engine.syncs_new((stat.dev, stat.ino), take_new) {
        register(engine, fd, stat);
    }
    let here = found(engine, fd, false, stat)?;
    engine.sync_directory_names(here.who, here.directory, &here)
}

/// The same of the directory that this path's last part is in, if that is in the log.
#[cold]
pub fn sync_parent(path: &[u8]) -> Option<Result<(), Errno>> {
    let mut whole = [0; libc::PATH_MAX as usize];
    let mut room = [0; NAME_MAX + 1];
    let path = engine().and_then(|_| sys::copied(path, &mut whole))?;
    let (here, _) = parent(libc::AT_FDCWD, path, &mut room)?;
    here.engine.sync_directory_names(here.who, here.directory, &here)
}

/// Takes the directory that this path's last part is in into the log, if it was made lately in one that is there. A file in it is
/// about to be synced.
pub(super) fn take_new_parent(engine: &'static Engine, path: &CStr) -> bool {
    let Some((fd, _)) = sys::parent_of(libc::AT_FDCWD, path) else { return false };
    let register = || {
        let mut is_taken = false;
        let _ = with_open(fd, |open| {
            is_taken = DAEMON.register_new(sys::borrow(open));
            Ok(())
        });
        is_taken
    };
    let is_taken = sys::fstat(fd).is_ok_and(|stat| engine.takes_new((stat.dev, stat.ino), register));
    sys::close(fd);
    is_taken
}

/// Asks the daemon for a directory. It says no for good where the file system does not keep the order of names.
#[cold]
fn register(engine: &'static Engine, fd: c_int, stat: &Stat) {
    if REFUSED.load(Relaxed) == mark(stat) || !policy::may_have_directories(engine.shm()) {
        return;
    }
    let mut room = [0; libc::PATH_MAX as usize];
    let path = sys::name_of(fd, &mut room);
    if path.and_then(|path| policy::decide_directory(engine.shm(), path)).is_none() {
        return;
    }
    if DAEMON.register(engine, sys::borrow(fd), false).refuses_directory() {
        REFUSED.store(mark(stat), Relaxed);
        REFUSED_ON.store(stat.dev, Relaxed);
    }
}

fn mark(stat: &Stat) -> u64 {
    stat.ino ^ stat.dev.rotate_left(32)
}

/// A file was synced for real. A program that syncs its new files, and not their directory, is served as well: from its next
/// ones on.
#[cold]
pub fn synced_for_real(engine: &'static Engine, fd: c_int, stat: &Stat) {
    let is_small = stat.regular && stat.links == 1 && stat.size <= LARGEST as u64;
    if !is_small || REFUSED_ON.load(Relaxed) == stat.dev || !policy::has_any(engine.shm()) {
        return;
    }
    let mut whole = [0; libc::PATH_MAX as usize];
    let mut room = [0; NAME_MAX + 1];
    if let Some(path) = path_of_any(engine, fd, &mut whole)
        && parent(libc::AT_FDCWD, path, &mut room).is_none()
    {
        ask_for_parent(engine, path);
    }
}

/// A name at this path is about to go, or to lead elsewhere: the directory is in the log by then, if its program counts on the order
/// of such changes and of its syncs. True if it does and the directory is not: [`after_change`] is due.
pub fn before_change(dir: c_int, path: &CStr) -> bool {
    let Some(engine) = session::joined().filter(|engine| policy::has_ordered(engine.shm())) else {
        return false;
    };
    let Some((fd, _)) = sys::parent_of(dir, path) else { return false };
    let is_outside = sys::fstat(fd).is_ok_and(|stat| {
        is_outside(engine, fd, &stat) && {
            ask_for(engine, fd, &stat);
            is_outside(engine, fd, &stat)
        }
    });
    sys::close(fd);
    is_outside
}

/// True if the log does not know this directory, whose program counts on the order of its names.
fn is_outside(engine: &Engine, fd: c_int, stat: &Stat) -> bool {
    let is_ordered = || {
        let mut room = [0; libc::PATH_MAX as usize];
        sys::name_of(fd, &mut room).is_some_and(|path| policy::is_ordered(engine.shm(), path))
    };
    engine.find(stat.dev, stat.ino).is_none() && is_ordered()
}

/// The change is over, and no log has it. The program's next syncs may be records, which wait for no journal of the file system:
/// so it is durable before them.
#[cold]
pub fn after_change(dir: c_int, path: &CStr) {
    if let Some((fd, _)) = sys::parent_of(dir, path) {
        sync(fd);
        sys::close(fd);
    }
}

/// A directory at this path is gone: that is durable, if its program counts on that.
pub fn after_removal(dir: c_int, path: &CStr) {
    let Some(engine) = session::joined().filter(|engine| policy::has_ordered(engine.shm())) else { return };
    let Some((fd, _)) = sys::parent_of(dir, path) else { return };
    let mut room = [0; libc::PATH_MAX as usize];
    if sys::name_of(fd, &mut room).is_some_and(|path| policy::is_ordered_root(engine.shm(), path)) {
        sync(fd);
    }
    sys::close(fd);
}

/// Syncs the directory behind `fd` after a change in it that is done. The calls that made it have no error for this.
fn sync(fd: c_int) {
    let _ = with_open(fd, |open| unsafe_call!(SYS_fsync, open).map(drop));
}

#[cold]
fn ask_for_parent(engine: &'static Engine, path: &CStr) {
    let Some((fd, _)) = sys::parent_of(libc::AT_FDCWD, path) else { return };
    if let Ok(stat) = sys::fstat(fd)
        && REFUSED.load(Relaxed) != mark(&stat)
        && is_due(&stat)
    {
        ask_for(engine, fd, &stat);
    }
    sys::close(fd);
}

/// Takes the directory behind `fd` into the log, if the daemon will have it.
fn ask_for(engine: &'static Engine, fd: c_int, stat: &Stat) {
    let _ = with_open(fd, |open| {
        register(engine, open, stat);
        if let Some(here) = here(engine, open, false) {
            // The real one that takes it into the log. The program's own fsync will report what came of it.
            let _ = engine.sync_directory_names(here.who, here.directory, &here);
        }
        Ok(())
    });
}

fn is_due(stat: &Stat) -> bool {
    if SYNCED_IN.swap(mark(stat), Relaxed) != mark(stat) {
        SYNCED.store(0, Relaxed);
    }
    SYNCED.fetch_add(1, Relaxed) + 1 >= SYNCS
}
