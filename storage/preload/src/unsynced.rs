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
    const NEW: c_int = O_CREAT | O_EXCL;
    let is_new = flags & NEW == NEW && flags & O_ACCMODE != O_RDONLY;
    is_new
        && flags & (O_DSYNC | O_SYNC | O_DIRECT | O_PATH) == 0
        && session::joined().is_some_and(|engine| policy::has_tablespaces(engine.shm()))
}

/// An open with these flags. What it makes may be such a file.
pub fn making(flags: c_int, open: impl FnOnce() -> Result<usize, Errno>) -> Result<usize, Errno> {
    // Somebody else may find the file and sync it as soon as it is there.
    let right = session::joined().filter(|_| may_make(flags)).map(|engine| engine.expect_unsynced());
    open().inspect(|fd| {
        if let Some(right) = right {
            has_made(*fd as c_int, right);
        }
    })
}

fn has_made(fd: c_int, right: Right) {
    let mut room = [0; libc::PATH_MAX as usize];
    let begins_unsynced =
        |path| session::joined().is_some_and(|log| policy::begins_unsynced(log.shm(), path));
    let entry = fdtable::get(fd);
    if entry.state() == State::Unknown
        && !owner::in_vfork_child()
        && sys::name_of(fd, &mut room).is_some_and(begins_unsynced)
    {
        fdtable::set(fd, entry.unsynced(right));
    }
}

/// Begins a change of the file behind `fd` around the log; [`finish`] ends it. `None`: the change needs a record, or is the
/// kernel's.
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

/// Ends it.
pub fn finish(fd: c_int, around: Around<'_>) {
    let is_given_up = around.is_given_up();
    drop(around);
    if is_given_up {
        // Somebody may have synced the file without this change.
        classify::disturb(fd);
    }
}

/// A real sync of the file behind `fd`, which has no slot. Its maker may write it around the log meanwhile: then that ends, and it
/// is synced once more.
pub fn sync(engine: &Engine, fd: c_int, sync: impl Fn() -> Result<(), Errno>) -> Result<(), Errno> {
    let mut room = [0; libc::PATH_MAX as usize];
    let begins_unsynced = |path| policy::begins_unsynced(engine.shm(), path);
    // Asked first: whoever ends the right while we sync does not sync what was written by then.
    let may_be_written = engine.has_rights() && sys::name_of(fd, &mut room).is_some_and(begins_unsynced);
    sync()?;
    if may_be_written {
        engine.revoke_rights();
        sync()?;
    }
    Ok(())
}
