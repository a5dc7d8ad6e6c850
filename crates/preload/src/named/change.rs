//! Calls that change names.

use core::ffi::{CStr, c_char, c_int};

use seawall_core::Errno;
use seawall_core::Turn;
use seawall_core::format::{Handle, NAME_MAX, NameChange};

use super::here::{Here, engine, here, parent};
use crate::app;
use crate::sys::{self, Stat};

/// A call that may make a file at this path. It learns whether it will, in a directory that is in the log, and whether no preset
/// wants such a file before its first sync.
pub fn making<R>(dir: c_int, path: &CStr, call: impl FnOnce(bool) -> R) -> R {
    let mut room = [0; NAME_MAX + 1];
    let Some((here, name)) = parent(dir, path, &mut room) else { return call(false) };
    let turn = here.enter();
    let was_there = sys::exists(here.fd, name);
    if was_there {
        // Should it be removed meanwhile, what is made shows in the directory's change time.
        turn.finish();
        return call(false);
    }
    let is_any = ![&b"-wal"[..], b"-journal"].iter().any(|end| name.to_bytes().ends_with(end));
    let done = call(is_any);
    here.has_made(&turn, name);
    turn.finish();
    done
}

/// A call of libc's that makes a file at a path which it makes up itself, in the place of `template`.
///
/// # Safety
/// As mkstemp(3).
pub unsafe fn making_up(template: *mut c_char, call: impl FnOnce() -> c_int) -> c_int {
    let mut room = [0; NAME_MAX + 1];
    // SAFETY: the caller's.
    let path = engine().and_then(|_| unsafe { app::path(template) });
    let Some((here, _)) = path.and_then(|path| parent(libc::AT_FDCWD, path, &mut room)) else {
        return call();
    };
    let turn = here.enter();
    let fd = call();
    // SAFETY: as above; libc has changed it.
    let made = if fd < 0 { None } else { unsafe { app::path(template) } };
    if let Some(path) = made {
        let bytes = path.to_bytes_with_nul();
        let name = CStr::from_bytes_with_nul(&bytes[sys::base_at(bytes)..]).unwrap_or_default();
        here.has_made(&turn, name);
    }
    turn.finish();
    fd
}

/// A call that makes or removes something that no record can say.
pub fn other<R>(dir: c_int, path: &CStr, call: impl FnOnce() -> R) -> R {
    let mut room = [0; NAME_MAX + 1];
    let Some((here, _)) = parent(dir, path, &mut room) else { return call() };
    let turn = here.enter();
    turn.leave();
    let done = call();
    turn.finish();
    done
}

/// unlink(2).
pub fn removing<R>(dir: c_int, path: &CStr, call: impl FnOnce() -> Result<R, Errno>) -> Result<R, Errno> {
    let mut room = [0; NAME_MAX + 1];
    let Some((here, name)) = parent(dir, path, &mut room) else { return call() };
    let turn = here.enter();
    let name_bytes = name.to_bytes();
    let victim = here.at(name);
    let gone = victim.filter(is_nowhere_else).map(|(_, file)| file);
    match gone {
        Some(file) => drop(turn.log(&NameChange::Gone { name: name_bytes, file })),
        // Nothing to remove, or what no record can say.
        None if sys::exists(here.fd, name) => turn.leave(),
        None => {}
    }
    let done = call();
    if let Some(file) = gone.filter(|_| done.is_err() && turn.is_in_log()) {
        turn.log(&NameChange::Is { name: name_bytes, file: Some(file) });
    }
    has_lost(&turn, victim, done.is_ok());
    turn.finish();
    done
}

/// renameat2(2). True if it was within a directory in the log.
pub fn moving<R>(
    (old_dir, old): (c_int, &CStr),
    (new_dir, new): (c_int, &CStr),
    is_plain: bool,
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<(R, bool), Errno> {
    let outside = |done: Result<R, Errno>| done.map(|done| (done, false));
    if engine().is_none() {
        return outside(call());
    }
    let (mut old_room, mut new_room) = ([0; NAME_MAX + 1], [0; NAME_MAX + 1]);
    let from = parent(old_dir, old, &mut old_room);
    let within = from.as_ref().filter(|_| is_plain && old_dir == new_dir).and_then(|_| beside(old, new));
    let to = if within.is_some() { None } else { parent(new_dir, new, &mut new_room) };
    let (here, name, to_name) = match (from, to, within) {
        (Some((here, name)), None, Some(to)) => (here, name, to),
        (Some((here, name)), Some((there, to)), _) if is_plain && here.inode == there.inode => {
            (here, name, to)
        }
        (from, to, _) => {
            leaving(old_dir, old);
            leaving(new_dir, new);
            return outside(across(from.map(|(here, _)| here), to.map(|(here, _)| here), call));
        }
    };
    let (source, victim) = (here.at(name), here.at(to_name));
    let is_other = source.is_none() && sys::exists(here.fd, name);
    if is_other {
        leaving(old_dir, old);
        leaving(new_dir, new);
    }
    let turn = here.enter();
    // Asked before, it may be another one by now.
    let (source, victim) = match turn.is_first() {
        true => (source, victim),
        false => (here.at(name), here.at(to_name)),
    };
    let is_victim_known =
        victim.map_or_else(|| !sys::exists(here.fd, to_name), |victim| is_nowhere_else(&victim));
    let is_there = source.is_some() || sys::exists(here.fd, name);
    let (name, to) = (name.to_bytes(), to_name.to_bytes());
    let over = victim.map(|(_, file)| file);
    let moved = source.map(|(_, file)| file).filter(|file| is_victim_known && over != Some(*file));
    match moved {
        Some(file) => drop(turn.log(&NameChange::Moved { name, to, file, over })),
        None if is_there => turn.leave(),
        // There is nothing that could move.
        None => {}
    }
    let done = call();
    if let Some(file) = moved.filter(|_| done.is_err() && turn.is_in_log()) {
        turn.log(&NameChange::Is { name, file: Some(file) });
        turn.log(&NameChange::Is { name: to, file: over });
    }
    has_lost(&turn, victim, done.is_ok() && moved.is_some());
    turn.finish();
    done.map(|done| (done, true))
}

/// The last part of `new`, if it is in the directory that `old` is in by the same words.
fn beside<'p>(old: &CStr, new: &'p CStr) -> Option<&'p CStr> {
    let (old, at) = (old.to_bytes(), sys::base_at(new.to_bytes()));
    let is_same = old[..sys::base_at(old)] == new.to_bytes()[..at];
    let name = CStr::from_bytes_with_nul(&new.to_bytes_with_nul()[at..]).ok()?;
    (is_same && !name.is_empty() && name.count_bytes() <= NAME_MAX).then_some(name)
}

/// True for a file that has no other name. One that has may have got that where no record says so: were this name's removal a
/// record, a power cut could leave the file without any.
fn is_nowhere_else((stat, _): &(Stat, Handle)) -> bool {
    stat.links <= 1
}

/// A file may have lost its last name.
fn has_lost(turn: &Turn<'_, Here>, victim: Option<(Stat, Handle)>, is_done: bool) {
    if let Some((stat, _)) = victim.filter(|(stat, _)| is_done && stat.links == 1) {
        turn.lost((stat.dev, stat.ino));
    }
}

/// The directory at this path is about to go, or to be elsewhere: it leaves the log.
pub fn leaving(dir: c_int, path: &CStr) {
    let Some(engine) = engine() else { return };
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let Ok(fd) = sys::openat(dir, path, flags, 0) else { return };
    if let Some(here) = here(engine, fd, true) {
        let turn = here.enter();
        turn.leave();
        turn.finish();
    }
}

/// A rename that no record can say: both directories leave the log, in the order of their slots.
fn across<R>(from: Option<Here>, to: Option<Here>, call: impl FnOnce() -> R) -> R {
    let (mut first, mut second) = (from, to);
    if let (Some(a), Some(b)) = (&first, &second) {
        if a.inode == b.inode {
            second = None;
        } else if a.directory.slot > b.directory.slot {
            core::mem::swap(&mut first, &mut second);
        }
    }
    let enter = |here: &Option<Here>, then: &mut dyn FnMut()| match here {
        Some(here) => {
            let turn = here.enter();
            turn.leave();
            then();
            turn.finish();
        }
        None => then(),
    };
    let (mut call, mut done) = (Some(call), None);
    enter(&first, &mut || enter(&second, &mut || done = call.take().map(|call| call())));
    done.unwrap_or_else(|| unreachable!("it was called once"))
}
