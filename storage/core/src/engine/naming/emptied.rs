//! Directories that are about to lose their only name: by rmdir(2), or by a rename over them.
//!
//! The kernel removes an empty one only, and so does recovery. So such a removal is a record if the disk has the directory
//! empty by then: it was in the log, where it changed by records alone, and left with a real sync if it had any. Of a
//! directory that the log does not know the disk may still have files whose removal, or move to another place, it lacks.

use core::ffi::CStr;

use super::directory::{Directory, Holds, Kind, Known};
use super::turns::{enter, try_enter};
use crate::engine::Turn;
use crate::format::Replaced;

/// What is known of a directory that is about to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Emptied {
    /// The one with this inode is empty, on the disk too.
    Yes((u64, u64)),
    /// Something is in it: the kernel leaves it where it is.
    No,
    /// Neither.
    Unknown,
}

impl Emptied {
    /// What a record says of it, if it is `known` at its name.
    pub(super) fn replaced(self, known: &Known) -> Option<Replaced> {
        known.replaced().filter(|_| known.kind == Kind::Directory && self == Self::Yes(known.inode))
    }
}

/// The guards in the directory at this name go, if nothing else is in it. Nothing may be held: the daemon, which lowers them,
/// may wait for a thread that waits for it.
pub(super) fn ahead<D: Directory>(here: &D, name: &CStr) -> Emptied {
    let Some(itself) = here.itself(name).filter(|itself| itself.holds() == Holds::Guards) else {
        return Emptied::Unknown;
    };
    let emptied = empty(&itself, enter(&itself));
    itself.clear();
    emptied
}

/// The same under its parent's turn, where its name stays what it is. `ahead`: what was known of it before.
pub(super) fn now<D: Directory>(here: &D, name: &CStr, ahead: Emptied) -> Emptied {
    let Some(itself) = here.itself(name) else { return ahead };
    try_enter(&itself).map_or(Emptied::Unknown, |turn| empty(&itself, turn))
}

fn empty<D: Directory>(itself: &D, turn: Turn<'_, D>) -> Emptied {
    if itself.holds() == Holds::More {
        turn.finish();
        return Emptied::No;
    }
    let emptied = if turn.leaves_whole() { Emptied::Yes(itself.inode()) } else { Emptied::Unknown };
    turn.finish_outside();
    emptied
}
