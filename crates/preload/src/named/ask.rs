//! Which directories the daemon is asked for, and when; and their syncs.

use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use seawall_core::client::Course;
use seawall_core::format::NAME_MAX;
use seawall_core::naming::LARGEST;
use seawall_core::{Engine, Errno, policy};

use super::here::{engine, found, here, parent, path_of_any};
use crate::client::DAEMON;
use crate::session;
use crate::sys::{self, Stat, unsafe_call};

/// So many small new files are synced for real before their directory is asked for.
const SYNCS: u32 = 2;

/// The directory for which the daemon was asked in vain.
static REFUSED: AtomicU64 = AtomicU64::new(0);
/// The device that one is on: where the order of names is not kept no directory of it is asked for because of its files.
static REFUSED_ON: AtomicU64 = AtomicU64::new(0);
/// The directory in which small files were synced for real, and how many.
static SYNCED_IN: AtomicU64 = AtomicU64::new(0);
static SYNCED: AtomicU32 = AtomicU32::new(0);

/// fsync(2) or fdatasync(2) of `fd`, if that is a directory in the log, or one that may be.
pub fn sync_directory(fd: c_int, stat: &Stat) -> Option<Result<(), Errno>> {
    let engine = session::joined().filter(|_| stat.directory)?;
    if engine.find(stat.dev, stat.ino).is_none() {
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

/// Asks the daemon for a directory. It says no for good where the file system does not keep the order of names.
#[cold]
fn register(engine: &'static Engine, fd: c_int, stat: &Stat) {
    let mut room = [0; libc::PATH_MAX as usize];
    let is_wanted = REFUSED.load(Relaxed) != mark(stat)
        && sys::name_of(fd, &mut room)
            .is_some_and(|path| policy::decide_directory(engine.shm(), path).is_some());
    if !is_wanted {
        return;
    }
    match DAEMON.register(engine, sys::borrow(fd), false) {
        Course::Log(_) => {}
        Course::Leave | Course::AskAgain | Course::AskNext | Course::Unanswered => {
            REFUSED.store(mark(stat), Relaxed);
            REFUSED_ON.store(stat.dev, Relaxed);
        }
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
        ask_for_parent(engine, (libc::AT_FDCWD, path), is_due);
    }
}

/// A name at this path is about to go, or to lead elsewhere: the directory is in the log by then, if its program counts on the order
/// of such changes and of its syncs.
pub fn before_change(dir: c_int, path: &CStr) {
    if let Some(engine) = session::joined().filter(|engine| policy::has_ordered(engine.shm())) {
        ask_for_parent(engine, (dir, path), |stat| {
            REFUSED_ON.load(Relaxed) != stat.dev && engine.find(stat.dev, stat.ino).is_none()
        });
    }
}

/// A directory at this path is gone: that is durable, if its program counts on that.
pub fn after_removal(dir: c_int, path: &CStr) {
    let Some(engine) = session::joined().filter(|engine| policy::has_ordered(engine.shm())) else { return };
    let Some((fd, _)) = sys::parent_of(dir, path) else { return };
    let mut room = [0; libc::PATH_MAX as usize];
    if sys::name_of(fd, &mut room).is_some_and(|path| policy::is_ordered_root(engine.shm(), path)) {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        if let Ok(open) = sys::openat(fd, c".", flags, 0) {
            // rmdir(2) has no error for this, and the removal is done.
            let _ = unsafe_call!(SYS_fsync, open);
            sys::close(open);
        }
    }
    sys::close(fd);
}

#[cold]
fn ask_for_parent(engine: &'static Engine, (dir, path): (c_int, &CStr), is_due: impl FnOnce(&Stat) -> bool) {
    let Some((fd, _)) = sys::parent_of(dir, path) else { return };
    if let Ok(stat) = sys::fstat(fd)
        && REFUSED.load(Relaxed) != mark(&stat)
        && is_due(&stat)
    {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        if let Ok(open) = sys::openat(fd, c".", flags, 0) {
            register(engine, open, &stat);
            if let Some(here) = here(engine, open, false) {
                // The real one that takes it into the log. What came of it, its own fsync will be told.
                let _ = engine.sync_directory_names(here.who, here.directory, &here);
            }
            sys::close(open);
        }
    }
    sys::close(fd);
}

fn is_due(stat: &Stat) -> bool {
    if SYNCED_IN.swap(mark(stat), Relaxed) != mark(stat) {
        SYNCED.store(0, Relaxed);
    }
    SYNCED.fetch_add(1, Relaxed) + 1 >= SYNCS
}
