//! Calls that change names by a path: which directory it is, and what `seawall_core::naming` makes of it.

use core::ffi::{CStr, c_char, c_int};

use seawall_core::Errno;
use seawall_core::format::NAME_MAX;
use seawall_core::naming::{self, Directory, How, Kind, Making};
use seawall_wire::shm::Preset;

use super::ask;
use super::here::{engine, itself, known, made_below, outside, parent};
use crate::sys::{self, Stat};
use crate::{app, errno};

/// A call that may make a file at this path. It learns what it is to do, and whether no preset wants the file that it makes before
/// its first sync.
pub fn making<R>(
    dir: c_int,
    path: &CStr,
    mut call: impl FnMut(Making, bool) -> Result<R, Errno>,
) -> Result<R, Errno> {
    let (known, mut room) = (known(), [0; NAME_MAX + 1]);
    let Some((here, name)) = parent(dir, path, &mut room) else {
        return outside(known, [(dir, path)], false, || call(Making::Other, false));
    };
    let is_any = here.preset == Preset::Any
        && ![&b"-wal"[..], b"-journal"].iter().any(|end| name.to_bytes().ends_with(end));
    naming::making(&here, name, |how| call(how, is_any && how == Making::New))
}

/// A call of libc's that makes a file at a path which it makes up itself, in the place of `template`.
///
/// # Safety
/// As mkstemp(3).
pub unsafe fn making_up(template: *mut c_char, call: impl FnOnce() -> c_int) -> c_int {
    let (known, mut room) = (known(), [0; NAME_MAX + 1]);
    // SAFETY: the caller's.
    let path = engine().and_then(|_| unsafe { app::path(template) });
    let Some(path) = path else { return call() };
    let Some((here, _)) = parent(libc::AT_FDCWD, path, &mut room) else {
        return outside(known, [(libc::AT_FDCWD, path)], false, call);
    };
    let turn = naming::enter(&here);
    if let Err(error) = turn.allowed() {
        turn.finish();
        errno::set(error);
        return -1;
    }
    let fd = call();
    // SAFETY: as above; libc has changed it.
    let made = if fd < 0 { None } else { unsafe { app::path(template) } };
    if let Some(path) = made {
        let bytes = path.to_bytes_with_nul();
        let name = CStr::from_bytes_with_nul(&bytes[sys::base_at(bytes)..]).unwrap_or_default();
        naming::has_made(&here, &turn, name);
    }
    turn.finish();
    fd
}

/// mkdir(2), symlink(2).
pub fn making_new<R>(dir: c_int, path: &CStr, call: impl FnOnce() -> Result<R, Errno>) -> Result<R, Errno> {
    let (known, mut room) = (known(), [0; NAME_MAX + 1]);
    match parent(dir, path, &mut room) {
        Some((here, name)) => naming::making_new(&here, name, call),
        None => {
            let done = outside(known, [(dir, path)], false, call)?;
            made_below(dir, path);
            Ok(done)
        }
    }
}

/// A call that makes or removes something that no record can say.
pub fn other<R>(dir: c_int, path: &CStr, call: impl FnOnce() -> Result<R, Errno>) -> Result<R, Errno> {
    let (known, mut room) = (known(), [0; NAME_MAX + 1]);
    match parent(dir, path, &mut room) {
        Some((here, _)) => naming::other(&here, call),
        None => outside(known, [(dir, path)], true, call),
    }
}

/// rmdir(2).
pub fn removing_directory<R>(
    dir: c_int,
    path: &CStr,
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<R, Errno> {
    let (known, mut room) = (known(), [0; NAME_MAX + 1]);
    let done = match parent(dir, path, &mut room) {
        Some((here, name)) => naming::removing_directory(&here, name, call),
        None => outside(known, [(dir, path)], true, || {
            leaving(dir, path);
            call()
        }),
    }?;
    ask::after_removal(dir, path);
    Ok(done)
}

/// unlink(2). The call learns whether the log says that the file is gone.
pub fn removing<R>(dir: c_int, path: &CStr, call: impl FnOnce(bool) -> Result<R, Errno>) -> Result<R, Errno> {
    let mut room = [0; NAME_MAX + 1];
    let is_outside = ask::before_change(dir, path);
    let known = known();
    let done = match parent(dir, path, &mut room) {
        Some((here, name)) => naming::removing(&here, name, call),
        None => outside(known, [(dir, path)], true, || call(false)),
    }?;
    if is_outside {
        ask::after_change(dir, path);
    }
    Ok(done)
}

/// The directory at this path is about to go, or to be elsewhere, by no record: it leaves the log. A change [`outside`] keeps it
/// there.
fn leaving(dir: c_int, path: &CStr) {
    engine().and_then(|engine| itself(engine, dir, path)).iter().for_each(naming::leaving);
}

/// renameat2(2). True if it was within a directory in the log. The call learns whether the log says that what had the new name
/// is gone.
pub fn moving<R>(
    from: (c_int, &CStr),
    to: (c_int, &CStr),
    how: How,
    call: impl FnOnce(bool) -> Result<R, Errno>,
) -> Result<(R, bool), Errno> {
    let outside = [from, to].map(|(dir, path)| ask::before_change(dir, path));
    let done = moving_between(from, to, how, call)?;
    for ((dir, path), is_outside) in [from, to].into_iter().zip(outside) {
        if is_outside {
            ask::after_change(dir, path);
        }
    }
    Ok(done)
}

fn moving_between<R>(
    (old_dir, old): (c_int, &CStr),
    (new_dir, new): (c_int, &CStr),
    how: How,
    call: impl FnOnce(bool) -> Result<R, Errno>,
) -> Result<(R, bool), Errno> {
    let known = known();
    if engine().is_none() {
        return outside(known, [(old_dir, old), (new_dir, new)], true, || call(false))
            .map(|done| (done, false));
    }
    let (mut old_room, mut new_room) = ([0; NAME_MAX + 1], [0; NAME_MAX + 1]);
    let from = parent(old_dir, old, &mut old_room);
    let beside = from.as_ref().filter(|_| old_dir == new_dir).and_then(|_| beside(old, new));
    let to = if beside.is_some() { None } else { parent(new_dir, new, &mut new_room) };
    let source = from.as_ref().and_then(|(here, name)| here.at(name));
    match (from, to, beside) {
        (Some((here, name)), None, Some(to)) => {
            naming::moving_within(&here, ((name, source), to), how, call).map(|done| (done, true))
        }
        (Some((here, name)), Some((there, to)), _) if here.inode == there.inode => {
            naming::moving_within(&here, ((name, source), to), how, call).map(|done| (done, true))
        }
        (Some((from, name)), Some((to, to_name)), _) => {
            naming::moving_across((&from, name), (&to, to_name), how, call).map(|done| (done, false))
        }
        (from, to, _) => {
            let rename = || {
                // No record says where they are.
                if how != How::Plain || source.is_none_or(|source| source.kind == Kind::Directory) {
                    leaving(new_dir, new);
                    leaving(old_dir, old);
                }
                match from.or(to) {
                    Some((here, _)) => naming::other(&here, || call(false)),
                    None => call(false),
                }
            };
            outside(known, [(old_dir, old), (new_dir, new)], true, rename).map(|done| (done, false))
        }
    }
}

/// The last part of `new`, if it is in the directory that `old` is in by the same words.
fn beside<'p>(old: &CStr, new: &'p CStr) -> Option<&'p CStr> {
    let at = sys::base_at(new.to_bytes());
    let name = CStr::from_bytes_with_nul(&new.to_bytes_with_nul()[at..]).ok()?;
    (sys::are_beside(old, new) && !name.is_empty() && name.count_bytes() <= NAME_MAX).then_some(name)
}

/// linkat(2). What comes from a directory that is not in the log is synced by a real sync of this one. The first name of a file
/// that was opened without one is a record of all that it has: what was synced of it before had no name that a power cut would
/// leave.
pub fn linking<R>(
    (old_dir, old): (c_int, &CStr),
    (new_dir, new): (c_int, &CStr),
    flags: c_int,
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<R, Errno> {
    let known = known();
    let (mut old_room, mut new_room) = ([0; NAME_MAX + 1], [0; NAME_MAX + 1]);
    let (from, to) = (parent(old_dir, old, &mut old_room), parent(new_dir, new, &mut new_room));
    match (from.filter(|_| flags == 0), to, nameless(old_dir, old, flags)) {
        (_, Some((here, to)), Some((fd, stat))) => {
            let turn = naming::enter(&here);
            let done = turn.allowed().and_then(|()| call());
            if done.is_ok() && turn.is_in_log() && !here.capture_in(&turn, (fd, &stat), to) {
                turn.leave();
            }
            turn.finish();
            done
        }
        (Some((from, name)), Some((here, to)), _) if from.inode == here.inode => {
            naming::linking_within(&here, (name, to), call)
        }
        (Some((from, name)), Some((here, to)), _) => naming::linking_across((&from, name), (&here, to), call),
        (_, Some((here, _)), _) => naming::other(&here, call),
        // What was synced of a file before is not in the record of a name.
        (Some((here, _)), None, _) => outside(known, [(new_dir, new)], true, || naming::beside(&here, call)),
        (None, None, _) => outside(known, [(new_dir, new)], true, call),
    }
}

/// The descriptor of a file without a name that is about to get one, by itself or by its link in /proc, and what it is.
fn nameless(dir: c_int, path: &CStr, flags: c_int) -> Option<(c_int, Stat)> {
    let fd = match flags {
        libc::AT_EMPTY_PATH if path.is_empty() => dir,
        libc::AT_SYMLINK_FOLLOW => {
            let digits = path.to_bytes().strip_prefix(b"/proc/self/fd/")?;
            core::str::from_utf8(digits).ok()?.parse().ok()?
        }
        _ => return None,
    };
    let stat = sys::fstat(fd).ok().filter(|stat| stat.regular && stat.links == 0)?;
    Some((fd, stat))
}
