//! Calls that make and remove names. Those that move files: `moves`; that give them one more: `links`.

use core::ffi::{CStr, c_char, c_int};

use seawall_core::Errno;
use seawall_core::format::{NAME_MAX, NameChange};

use super::here::{engine, here, parent};
use crate::app;
use crate::sys;

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

/// mkdir(2).
pub fn making_directory<R>(
    dir: c_int,
    path: &CStr,
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<R, Errno> {
    let mut room = [0; NAME_MAX + 1];
    let Some((here, name)) = parent(dir, path, &mut room) else { return call() };
    let turn = here.enter();
    let done = call();
    if done.is_ok() {
        here.has_made_directory(&turn, name);
    }
    turn.finish();
    done
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
    let gone = victim.filter(|victim| here.knows_names(victim)).map(|(_, file)| file);
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
    if let Some((stat, _)) = victim.filter(|_| done.is_ok()) {
        turn.lost((stat.dev, stat.ino), stat.links as u32);
    }
    turn.finish();
    done
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
