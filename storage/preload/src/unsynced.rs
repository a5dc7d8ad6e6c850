//! Files that this process has just made and that nobody has synced: they are written around the log
//! ([`Right`]).

use core::ffi::c_int;

use libc::{O_ACCMODE, O_CREAT, O_DIRECT, O_DSYNC, O_EXCL, O_PATH, O_RDONLY, O_SYNC};
use seawall_core::{Around, Engine, Errno, Right, policy};

use crate::fdtable::{self, State};
use crate::{classify, owner, session, sys};

/// True if an open with these flags may make such a file.
#[inline]
pub fn may_make(flags: c_int) -> bool {
    log_around(flags).is_some()
}

/// The log that is written around, if such a file may be made.
fn log_around(flags: c_int) -> Option<&'static Engine> {
    const NEW: c_int = O_CREAT | O_EXCL;
    let is_new = flags & NEW == NEW && flags & O_ACCMODE != O_RDONLY;
    let is_plain = flags & (O_DSYNC | O_SYNC | O_DIRECT | O_PATH) == 0;
    let engine = if is_new && is_plain { session::joined()? } else { return None };
    policy::has_tablespaces(engine.shm()).then_some(engine)
}

/// An open with these flags. What it makes may be such a file.
pub fn making(flags: c_int, open: impl FnOnce() -> Result<usize, Errno>) -> Result<usize, Errno> {
    let Some(engine) = log_around(flags) else { return open() };
    // Somebody else may find the file and sync it as soon as it is there.
    let right = engine.expect_unsynced();
    open().inspect(|fd| has_made(engine, *fd as c_int, right))
}

fn has_made(engine: &Engine, fd: c_int, right: Right) {
    let entry = fdtable::get(fd);
    if entry.state() == State::Unknown && !owner::in_vfork_child() && begins_unsynced(engine, fd) {
        fdtable::set(fd, entry.unsynced(right));
    }
}

/// True if its name says so of the file behind `fd`.
fn begins_unsynced(engine: &Engine, fd: c_int) -> bool {
    let mut room = [0; libc::PATH_MAX as usize];
    sys::name_of(fd, &mut room).is_some_and(|path| policy::begins_unsynced(engine.shm(), path))
}

/// The right to change the file behind `fd` around the log, by [`change`]. `None`: the change needs a record, or is the kernel's.
#[inline]
pub fn around(fd: c_int) -> Option<Around<'static>> {
    fdtable::get(fd).right().and_then(|right| begin(fd, right))
}

#[inline(never)]
fn begin(fd: c_int, right: Right) -> Option<Around<'static>> {
    let engine = session::joined()?;
    let around = engine.write_around(owner::current(engine)?, right);
    if around.is_none() {
        fdtable::set(fd, fdtable::get(fd).without_right());
    }
    around
}

/// A change of the file behind `fd` around the log.
pub fn change<R>(fd: c_int, around: Around<'_>, op: impl FnOnce() -> R) -> R {
    let done = op();
    let is_given_up = around.is_given_up();
    drop(around);
    if is_given_up {
        // Somebody may have synced the file without this change.
        classify::disturb(fd);
    }
    done
}

/// A real sync of the file behind `fd`, which has no slot. Its maker may write it around the log meanwhile: then that ends, and it
/// is synced once more.
pub fn sync(engine: &Engine, fd: c_int, sync: impl Fn() -> Result<(), Errno>) -> Result<(), Errno> {
    // Asked first: whoever ends the right while we sync does not sync what was written by then.
    let may_be_written = engine.has_rights() && begins_unsynced(engine, fd);
    sync()?;
    if may_be_written {
        engine.revoke_rights();
        sync()?;
    }
    Ok(())
}
