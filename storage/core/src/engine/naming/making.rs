//! Calls that make something: a file, a directory, a symbolic link.

use core::ffi::CStr;

use rustix::io::Errno;

use super::directory::{Directory, Kind};
use super::turns::{beside, enter, leaving};
use crate::engine::Turn;
use crate::format::NameChange;

/// What a call that may make a file is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Making {
    /// It makes one: there is none.
    New,
    /// It opens the one that is there, and makes none, if it can help it: a process that has removed it meanwhile has a record
    /// of that, and this one would have none.
    Opens,
    /// It does whatever the kernel does: something else is there, or the log does not know of it.
    Other,
}

/// So often a file is looked for that others remove and make.
const LOOKS: usize = 100;

/// Runs a call that may make a file. The call learns what it is to do, and is made again if what it was to open is gone.
///
/// # Errors
/// The call's error, or [EIO](Turn::allowed), here and below.
pub fn making<D: Directory, R>(
    here: &D,
    name: &CStr,
    mut call: impl FnMut(Making) -> Result<R, Errno>,
) -> Result<R, Errno> {
    if !here.keeps(name) {
        return beside(here, || call(Making::Other));
    }
    for _ in 0..LOOKS {
        let turn = enter(here);
        let Some(found) = here.at(name) else {
            let done = turn.allowed().and_then(|()| call(Making::New));
            has_made(here, &turn, name);
            turn.finish();
            return done;
        };
        let stand = turn.stand();
        // Nothing may be held: an open may wait for the daemon, which waits for the directory.
        turn.finish();
        let is_plain = found.kind == Kind::File && found.attributes.uid == here.uid();
        let done = call(if is_plain { Making::Opens } else { Making::Other });
        if is_plain && matches!(done, Err(Errno::NOENT)) {
            continue;
        }
        let is_another = || here.at(name).and_then(|now| now.handle) != found.handle;
        if here.engine().stand(here.reference()) != stand && is_another() {
            // This call may have made one that the log does not know.
            leaving(here);
        }
        return done;
    }
    Err(Errno::NOENT)
}

/// Logs what was just made at `name`, if anything was.
pub fn has_made<D: Directory>(here: &D, turn: &Turn<'_, D>, name: &CStr) {
    let Some(made) = here.at(name).filter(|_| here.keeps(name)) else { return };
    let is_own = made.attributes.uid == here.uid();
    let Some(file) = made.handle.filter(|_| is_own && !made.has_others()) else { return turn.leave() };
    let (bytes, mut attributes) = (name.to_bytes(), made.attributes);
    if made.kind == Kind::Directory {
        here.engine().directory_is_made(made.inode, &file, &attributes);
        attributes = attributes.as_directory();
    }
    let is_logged = match made.kind {
        Kind::File | Kind::Directory => Some(turn.log(&NameChange::Made { name: bytes, file, attributes })),
        Kind::Symlink => here.with_target(name, |target| {
            turn.log(&NameChange::Symlink { name: bytes, file, attributes, target })
        }),
        Kind::Other => None,
    };
    if is_logged.is_none() {
        turn.leave();
    }
}

/// mkdir(2), symlink(2).
///
/// # Errors
/// As for [`making`](making()).
pub fn making_new<D: Directory, R>(
    here: &D,
    name: &CStr,
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<R, Errno> {
    let turn = enter(here);
    let done = turn.allowed().and_then(|()| call());
    if done.is_ok() {
        has_made(here, &turn, name);
    }
    turn.finish();
    done
}
