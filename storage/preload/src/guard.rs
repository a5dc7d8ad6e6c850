//! The guards of P5, from the inside: under Seawall a path that a guard blocks leads to the real file.
//!
//! ```text
//! …/backup_label, …/CURRENT, …      →  the same with .seawall   if what is there is a guard's text (it has a mark)
//! X-journal, …/ddl_recovery.log     →  the same with .seawall   if what is there is a directory with a file .seawall
//! ```
//!
//! A database that replaces such a file by a rename, removes it or makes it anew does so beside the guard.
//!
//! A directory is listed as the database left it: without guards, and with the true files by their own names.
//!
//! Only in a process that has joined the log: one that cannot must meet the guard.

use core::ffi::{CStr, c_char, c_int};

use seawall_core::{Engine, stand_in};
use seawall_wire::shm::Preset;

use crate::look::{self, Seen};
use crate::{app, session, sys};

mod led;

pub use led::{Led, act, acting, looking, once};

const PATH_MAX: usize = libc::PATH_MAX as usize;
const SUFFIX: &[u8] = b".seawall";
const MARKER: &[u8] = b"/.seawall";

/// The path, if a guard may stand there.
///
/// # Safety
/// As for [`judged`](led::judged).
#[inline]
unsafe fn guarded<'a>(path: *const c_char) -> Option<&'a CStr> {
    if session::is_off() {
        return None;
    }
    // SAFETY: the caller's.
    unsafe { app::path(path) }.filter(|name| is_guarded(name.to_bytes()))
}

/// Room for a path.
pub const fn room() -> [u8; PATH_MAX] {
    [0; PATH_MAX]
}

/// Where the journal of this name is, if its guard is up.
pub fn journal_aside<'a>(dir: c_int, path: &CStr, room: &'a mut [u8; PATH_MAX]) -> Option<&'a CStr> {
    if is_journal(path) { redirect(dir, path, room) } else { None }
}

/// The absent journal of this name, and where it is.
pub fn absent_journal<'a>(dir: c_int, path: &CStr, room: &'a mut [u8; PATH_MAX]) -> Option<(&'a CStr, Seen)> {
    if !is_journal(path) || !has_absent() {
        return None;
    }
    let aside = redirect(dir, path, room)?;
    Some((aside, absent(dir, aside)?))
}

fn is_journal(path: &CStr) -> bool {
    !session::is_off() && stand_in::has_directory(Preset::Sqlite, path.to_bytes())
}

fn has_absent() -> bool {
    session::engine().is_some_and(Engine::may_have_absent)
}

/// The absent journal at its place beside its guard.
pub fn absent(dir: c_int, aside: &CStr) -> Option<Seen> {
    if has_absent() { look::at(dir, aside, libc::AT_SYMLINK_NOFOLLOW).filter(is_absent) } else { None }
}

/// True for an absent journal. One with bytes is there, whatever the log says of it: a process that came to it another
/// way, through a mount for one, wrote it, and a database may need it.
pub fn is_absent(seen: &Seen) -> bool {
    seen.stat.size == 0 && seen.engine.is_absent(seen.file)
}

fn is_guarded(path: &[u8]) -> bool {
    stand_in::may_stand_at(path)
}

/// True if a guard stands at `path`.
pub fn is_up(dir: c_int, path: &CStr) -> bool {
    match stand_in::is_directory(path.to_bytes()) {
        true => join(path, MARKER, &mut room()).is_some_and(|marker| sys::exists(dir, marker)),
        false => is_marked(dir, path),
    }
}

/// True if a guard's text is at `path`.
fn is_marked(dir: c_int, path: &CStr) -> bool {
    absolute(dir, path, &mut room()).is_some_and(|path| sys::has_attribute(path, stand_in::MARK))
}

#[cold]
fn redirect<'a>(dir: c_int, path: &CStr, room: &'a mut [u8; PATH_MAX]) -> Option<&'a CStr> {
    if !is_up(dir, path) || session::engine().is_none() {
        return None;
    }
    join(path, SUFFIX, room)
}

/// A path for calls that take no directory's descriptor.
fn absolute<'a>(dir: c_int, path: &'a CStr, room: &'a mut [u8; PATH_MAX]) -> Option<&'a CStr> {
    if dir == libc::AT_FDCWD || path.to_bytes().starts_with(b"/") {
        return Some(path);
    }
    let mut link = [0; 32];
    let mut len = 0;
    for part in [sys::proc_link(dir, &mut link)?.to_bytes(), b"/", path.to_bytes_with_nul()] {
        room.get_mut(len..len + part.len())?.copy_from_slice(part);
        len += part.len();
    }
    CStr::from_bytes_until_nul(room).ok()
}

/// What a program is shown of a directory's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// As it is.
    Plain,
    /// Not at all: a guard, or a part of one.
    Not,
    /// By the first bytes of its name: it is the true file beside a guard.
    As(usize),
}

/// What is shown of the entry `name` of the directory `dir`.
#[inline]
pub fn shown(dir: c_int, name: &CStr) -> Shown {
    let bytes = name.to_bytes();
    let is_ours = bytes.ends_with(SUFFIX) || bytes.ends_with(stand_in::TEMPORARY);
    if session::is_off() || !is_ours && !stand_in::may_stand_at(bytes) {
        return Shown::Plain;
    }
    judge(dir, name)
}

#[cold]
fn judge(dir: c_int, name: &CStr) -> Shown {
    let bytes = name.to_bytes();
    let shown = match bytes.strip_suffix(SUFFIX) {
        Some(base) if stand_in::may_stand_at(base) => {
            let mut room = [0; PATH_MAX];
            let Some(stem) = sys::copied(base, &mut room) else { return Shown::Plain };
            let is_half_a_guard = stand_in::is_directory(base) && sys::is_directory(dir, name);
            match is_up(dir, stem) {
                true if absent(dir, name).is_some() => Shown::Not,
                true => Shown::As(base.len()),
                false if is_half_a_guard => Shown::Not,
                // The daemon has lowered the guard since this was listed.
                false if !sys::exists(dir, name) => match sys::exists(dir, stem) {
                    true => Shown::As(base.len()),
                    false => Shown::Not,
                },
                false => Shown::Plain,
            }
        }
        Some(_) => Shown::Plain,
        None if bytes.strip_suffix(stand_in::TEMPORARY).is_some_and(stand_in::may_stand_at) => Shown::Not,
        // The same of one whose file is gone.
        None if is_guarded(bytes) && (is_up(dir, name) || !sys::exists(dir, name)) => Shown::Not,
        None => Shown::Plain,
    };
    if shown != Shown::Plain && session::engine().is_none() { Shown::Plain } else { shown }
}

fn join<'a>(path: &CStr, end: &[u8], room: &'a mut [u8; PATH_MAX]) -> Option<&'a CStr> {
    let path = path.to_bytes();
    let len = path.len() + end.len();
    if len >= PATH_MAX {
        return None;
    }
    room[..path.len()].copy_from_slice(path);
    room[path.len()..len].copy_from_slice(end);
    room[len] = 0;
    CStr::from_bytes_until_nul(room).ok()
}

/// True if `path` means what it says.
///
/// # Safety
/// As for [`judged`](led::judged).
#[inline]
pub unsafe fn is_clear_of(dir: c_int, path: *const c_char) -> bool {
    // SAFETY: the caller's.
    let name = unsafe { guarded(path) };
    name.is_none_or(|name| redirect(dir, name, &mut room()).is_none())
}

/// True if `path` means what it says, and will: no guard can come there.
///
/// # Safety
/// As for [`judged`](led::judged).
#[inline]
pub unsafe fn stays_clear_of(dir: c_int, path: *const c_char) -> bool {
    // SAFETY: the caller's.
    let name = unsafe { guarded(path) };
    let is_special = |stat: sys::Stat| !stat.regular && !stat.directory;
    name.is_none_or(|name| sys::fstatat(dir, name, 0).is_ok_and(is_special))
}
