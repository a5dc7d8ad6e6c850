//! rename(2) in directories that are in the log.

use core::ffi::{CStr, c_int};

use seawall_core::format::{Across, Handle, NAME_MAX, NameChange};
use seawall_core::{Errno, Turn};

use super::change::leaving;
use super::here::{Here, engine, parent};
use crate::sys::{self, Stat};

/// What renameat2's flags ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The file gets the name, whatever had it (or nobody, RENAME_NOREPLACE).
    Plain,
    /// Two files get each other's.
    Exchange,
    /// Something that no record says.
    Other,
}

/// What is at a name, as far as a record can name it.
type Known = Option<(Stat, Handle)>;

/// renameat2(2). True if it was within a directory in the log.
pub fn moving<R>(
    (old_dir, old): (c_int, &CStr),
    (new_dir, new): (c_int, &CStr),
    how: How,
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<(R, bool), Errno> {
    if engine().is_none() {
        return call().map(|done| (done, false));
    }
    let (mut old_room, mut new_room) = ([0; NAME_MAX + 1], [0; NAME_MAX + 1]);
    let from = parent(old_dir, old, &mut old_room);
    let beside = from.as_ref().filter(|_| old_dir == new_dir).and_then(|_| beside(old, new));
    let to = if beside.is_some() { None } else { parent(new_dir, new, &mut new_room) };
    let is_directory = || from.as_ref().is_none_or(|(here, name)| here.at(name).is_none());
    if is_directory() || how == How::Exchange {
        leaving(old_dir, old);
        leaving(new_dir, new);
    }
    match (from, to, beside) {
        (Some((here, name)), None, Some(to)) => within(&here, name, to, how, call).map(|done| (done, true)),
        (Some((here, name)), Some((there, to)), _) if here.inode == there.inode => {
            within(&here, name, to, how, call).map(|done| (done, true))
        }
        // The kernel says so.
        (Some((from, _)), Some((to, _)), _) if from.inode.0 != to.inode.0 => call().map(|done| (done, false)),
        (Some((from, name)), Some((to, to_name)), _) => {
            across((&from, name), (&to, to_name), how, call).map(|done| (done, false))
        }
        (Some((here, _)), None, None) | (None, Some((here, _)), _) => {
            let turn = here.enter();
            turn.leave();
            let done = call();
            turn.finish();
            done.map(|done| (done, false))
        }
        (None, None, _) => call().map(|done| (done, false)),
    }
}

/// Within a directory.
fn within<R>(
    here: &Here,
    name: &CStr,
    to_name: &CStr,
    how: How,
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<R, Errno> {
    let before = (here.at(name), here.at(to_name));
    let turn = here.enter();
    // Asked before, it may be another one by now.
    let (source, victim) = if turn.is_first() { before } else { (here.at(name), here.at(to_name)) };
    let (name_bytes, to) = (name.to_bytes(), to_name.to_bytes());
    let over = victim.map(|(_, file)| file);
    let moved = moved(source, (here, to_name, victim), how);
    match moved {
        Some(file) => {
            let (name, exchanged, across) = (name_bytes, how == How::Exchange, Across::No);
            turn.log(&NameChange::Moved { name, to, file, over, exchanged, across });
        }
        None if source.is_some() || sys::exists(here.fd, name) => turn.leave(),
        // There is nothing that could move.
        None => {}
    }
    let done = call();
    if let Some(file) = moved.filter(|_| done.is_err() && turn.is_in_log()) {
        turn.log(&NameChange::Is { name: name_bytes, file: Some(file) });
        turn.log(&NameChange::Is { name: to, file: over });
    }
    has_lost(&turn, victim, done.is_ok() && moved.is_some() && how == How::Plain);
    turn.finish();
    done
}

/// From one directory to another. They are entered in the order of their slots.
fn across<R>(
    (from, name): (&Here, &CStr),
    (to, to_name): (&Here, &CStr),
    how: How,
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<R, Errno> {
    let (source, target) = if from.directory.slot < to.directory.slot {
        let source = from.enter();
        (source, to.enter())
    } else {
        let target = to.enter();
        (from.enter(), target)
    };
    let (file, victim) = (from.at(name), to.at(to_name));
    let is_known = source.is_in_log() && target.is_in_log() && how == How::Plain;
    let is_known = is_known && file.is_some_and(|(stat, _)| stat.links == 1);
    let moved = moved(file, (to, to_name, victim), how).filter(|_| is_known);
    let is_logged = moved.zip(file).is_some_and(|(moved, (stat, _))| {
        let over = victim.map(|(_, file)| file);
        from.carry((&source, name), (to, &target), &stat, &moved)
            && source.log_move(&target, (name.to_bytes(), to_name.to_bytes()), moved, over)
    });
    if !is_logged {
        source.leave();
        target.leave();
    }
    let done = call();
    if done.is_err() && is_logged {
        // Neither says what was.
        source.leave();
        target.leave();
    }
    has_lost(&target, victim, done.is_ok() && is_logged);
    target.finish();
    source.finish();
    done
}

/// The file that moves, if a record can say that, and what becomes of what was there.
fn moved(source: Known, (to, to_name, victim): (&Here, &CStr, Known), how: How) -> Option<Handle> {
    let (_, file) = source?;
    let over = victim.map(|(_, file)| file);
    let is_victim_known = match (&victim, how) {
        (_, How::Other) => false,
        (Some(_), How::Exchange) => true,
        (Some(victim), How::Plain) => to.knows_names(victim),
        (None, How::Exchange) => false,
        (None, How::Plain) => !sys::exists(to.fd, to_name),
    };
    (is_victim_known && over != Some(file)).then_some(file)
}

/// The last part of `new`, if it is in the directory that `old` is in by the same words.
fn beside<'p>(old: &CStr, new: &'p CStr) -> Option<&'p CStr> {
    let (old, at) = (old.to_bytes(), sys::base_at(new.to_bytes()));
    let is_same = old[..sys::base_at(old)] == new.to_bytes()[..at];
    let name = CStr::from_bytes_with_nul(&new.to_bytes_with_nul()[at..]).ok()?;
    (is_same && !name.is_empty() && name.count_bytes() <= NAME_MAX).then_some(name)
}

/// A file has lost a name, if `is_done`.
fn has_lost(turn: &Turn<'_, Here>, victim: Known, is_done: bool) {
    if let Some((stat, _)) = victim.filter(|_| is_done) {
        turn.lost((stat.dev, stat.ino), stat.links as u32);
    }
}
