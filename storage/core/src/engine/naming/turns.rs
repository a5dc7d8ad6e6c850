//! What calls on names have in common: they enter one directory or two, and know what the log knows of a file.

use core::ffi::CStr;

use rustix::io::Errno;

use super::directory::{Directory, Known};
use crate::engine::Turn;
use crate::format::{Handle, NameChange};

/// Nobody else changes a directory's names until the turn is finished.
pub fn enter<D: Directory>(here: &D) -> Turn<'_, D> {
    here.engine().enter_directory(here.who(), here.reference(), here)
}

/// The same if no wait is needed: nobody is waited for while another directory is held.
pub(super) fn try_enter<D: Directory>(here: &D) -> Option<Turn<'_, D>> {
    here.engine().try_enter_directory(here.who(), here.reference(), here)
}

/// The directory is about to be removed or moved: it leaves the log.
pub fn leaving<D: Directory>(here: &D) {
    let turn = enter(here);
    turn.leave();
    turn.finish_outside();
}

/// Runs a call that changes names of no directory in the log, while nobody removes names here.
pub fn beside<D: Directory, R>(here: &D, call: impl FnOnce() -> R) -> R {
    let turn = enter(here);
    let done = call();
    turn.finish();
    done
}

/// Runs a call that the kernel is going to refuse: then nothing changes.
pub(super) fn refused<D: Directory, R>(
    turn: Turn<'_, D>,
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<R, Errno> {
    let done = turn.allowed().and_then(|()| call());
    if done.is_ok() {
        turn.leave();
    }
    turn.finish();
    done
}

/// True if the log knows every name of this file, which has one here: then the removal of one of them may be a record.
/// An unknown name may not be on the disk yet, and the file would be lost with this one.
pub(super) fn knows_names<D: Directory>(here: &D, known: &Known) -> bool {
    let captured = || here.engine().captured(known.inode);
    !known.has_others()
        || captured().is_some_and(|captured| {
            // If its names are in several directories, one of them stays in the directory whose records have its content.
            let is_its_own = captured.directory == here.reference();
            u64::from(captured.links) == known.links && is_its_own != captured.is_spread
        })
}

/// True if the name still leads to this file. Otherwise somebody has changed it unseen: a thread that had looked at the
/// directory before it entered the log, for one.
pub(super) fn leads_to<D: Directory>(here: &D, name: &CStr, file: Handle) -> bool {
    here.at(name).and_then(|known| known.handle) == Some(file)
}

/// A file has lost a name, if `is_done`.
pub(super) fn has_lost<D: Directory>(turn: &Turn<'_, D>, victim: Option<Known>, is_done: bool) {
    if let Some(victim) = victim.filter(|_| is_done) {
        turn.lost(victim.inode, victim.links as u32);
    }
}

/// Enters two directories, in the order of their slots.
pub(super) fn enter_both<'d, D: Directory>(from: &'d D, to: &'d D) -> (Turn<'d, D>, Turn<'d, D>) {
    if from.reference().slot < to.reference().slot {
        let source = enter(from);
        (source, enter(to))
    } else {
        let target = enter(to);
        (enter(from), target)
    }
}

/// Moves the whole content of a file from one directory's records to those of another, to which the file is about to
/// move: a sync of the other directory's names makes what they lead to durable too. False: the content stays, and so
/// must the file.
pub(super) fn carry<D: Directory>(
    (from, turn, name): (&D, &Turn<'_, D>, &CStr),
    (to, target): (&D, &Turn<'_, D>),
    known: &Known,
) -> bool {
    let Some(captured) = from.engine().captured(known.inode) else { return true };
    let Some(file) = known.file() else { return false };
    if captured.directory != from.reference() || captured.links != 1 || known.attributes.uid != to.uid() {
        return false;
    }
    let attributes = known.attributes;
    let is_carried = target.capture(known.inode, &file, |record| {
        let content = |data: &[u8]| record(&NameChange::Holds { file, attributes, data });
        from.with_content(name, known, content).flatten()
    });
    let held = from.engine().captured(known.inode);
    let held = held.filter(|now| is_carried && now.directory == to.reference());
    held.is_some_and(|held| {
        let held = Some((target.elsewhere(), held.lsn));
        turn.log(&NameChange::Settled { file, held })
    })
}
