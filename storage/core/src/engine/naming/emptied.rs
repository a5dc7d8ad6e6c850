//! Directories that are about to lose their only name: by rmdir(2), or by a rename over them.
//!
//! The kernel removes an empty one only, and so does recovery. So such a removal is a record if the disk has the directory
//! empty by then: it was in the log, where it changed by records alone, and left with a real sync if it had any. Of a
//! directory that the log does not know the disk may still have files whose removal, or move to another place, it lacks.
//!
//! By record or not: such a directory leaves the log before the call, and belongs to the caller until that is over. Records of
//! what was in it would otherwise outlive it, and recovery would look for a directory that is nowhere.

use core::ffi::CStr;

use rustix::io::Errno;

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
    let turn = enter(&itself);
    let emptied = empty(&itself, &turn);
    finish(turn, emptied);
    itself.clear();
    emptied
}

/// The name of a directory that is about to go. The call enters `here`, where the name is, and `from`.
pub(super) struct Going<'a, D> {
    pub here: &'a D,
    pub name: &'a CStr,
    pub from: &'a D,
}

impl<D: Directory> Going<'_, D> {
    /// The directory, if the log knows it. One that the call enters is none: the kernel removes no directory by a name in it.
    fn itself(&self) -> Option<D> {
        let is_entered =
            |itself: &D| [self.here, self.from].iter().any(|held| held.reference() == itself.reference());
        self.here.itself(self.name).filter(|itself| !is_entered(itself))
    }
}

/// Runs a call that may remove a directory, which is the caller's own meanwhile.
///
/// `enter` enters what else the call changes, and says what may go; `give_back` finishes those turns. Nobody is waited for with
/// them: if somebody is in the directory, they are given back, it is waited for, and all is looked at anew. `ahead`: what was
/// known of it before.
pub(super) fn alone<'a, D: Directory + 'a, T, R>(
    ahead: Emptied,
    enter: impl Fn() -> (T, Option<Going<'a, D>>),
    give_back: impl Fn(T),
    call: impl FnOnce(T, Emptied) -> Result<R, Errno>,
) -> Result<R, Errno> {
    let mut may_wait = true;
    loop {
        let (entered, going) = enter();
        let Some(going) = going else { return call(entered, Emptied::Unknown) };
        let Some(itself) = going.itself() else {
            // Nor does it enter the log meanwhile.
            let _under_way = going.here.engine().begins_outside(Some(going.here.who()));
            if going.itself().is_none() {
                return call(entered, ahead);
            }
            give_back(entered);
            continue;
        };
        let turn = try_enter(&itself);
        if turn.is_none() && may_wait {
            give_back(entered);
            may_wait = waits(&itself);
            continue;
        }
        let Some(turn) = turn else { return call(entered, Emptied::Unknown) };
        let emptied = empty(&itself, &turn);
        let done = call(entered, emptied);
        if done.is_ok() && turn.is_in_log() {
            // The kernel has removed it all the same: somebody emptied it unseen.
            turn.leave();
        }
        finish(turn, emptied);
        return done;
    }
}

/// Waits until nobody is in the directory, which leaves the log. False: it is this thread that is, in a signal handler; or the
/// log knows the directory no more.
fn waits<D: Directory>(itself: &D) -> bool {
    let turn = enter(itself);
    let has_entered = turn.stand().is_some();
    turn.leave();
    turn.finish_outside();
    has_entered
}

fn empty<D: Directory>(itself: &D, turn: &Turn<'_, D>) -> Emptied {
    match () {
        () if itself.holds() == Holds::More => Emptied::No,
        () if turn.leaves_whole() => Emptied::Yes(itself.inode()),
        () => Emptied::Unknown,
    }
}

fn finish<D: Directory>(turn: Turn<'_, D>, emptied: Emptied) {
    if emptied == Emptied::No { turn.finish() } else { turn.finish_outside() }
}
