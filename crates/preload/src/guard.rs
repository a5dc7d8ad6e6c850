//! The guards of P5, from the inside: under Seawall a path that a guard blocks leads to the real file.
//!
//! ```text
//! …/PG_VERSION, …/CURRENT, …   →  the same with .seawall    if what is there is a guard's text (it has a mark)
//! X-journal                    →  X-journal.seawall         if X-journal is a directory with a file .seawall
//! ```
//!
//! A database that replaces such a file by a rename, removes it or makes it anew does so beside the guard.
//!
//! Only in a process that has joined the log: one that cannot must meet the guard.

use core::ffi::{CStr, c_char, c_int};

use seawall_core::stand_in;

use crate::{app, session, sys};

const PATH_MAX: usize = libc::PATH_MAX as usize;
const SUFFIX: &[u8] = b".seawall";
const MARKER: &[u8] = b"/.seawall";

/// Calls `call` with `path`, or with the path it stands for.
///
/// # Safety
/// `path` is null or a C string that lives for the call.
#[inline]
pub unsafe fn with<R>(dir: c_int, path: *const c_char, call: impl FnOnce(*const c_char) -> R) -> R {
    if session::is_off() {
        return call(path);
    }
    // SAFETY: the caller's.
    match unsafe { app::path(path) } {
        Some(name) if is_guarded(name.to_bytes()) => {
            let mut room = [0; PATH_MAX];
            call(redirect(dir, name, &mut room).unwrap_or(name).as_ptr())
        }
        _ => call(path),
    }
}

fn is_guarded(path: &[u8]) -> bool {
    is_journal(path) || stand_in::may_stand_at(path)
}

fn is_journal(path: &[u8]) -> bool {
    path.ends_with(b"-journal")
}

#[cold]
fn redirect<'a>(dir: c_int, path: &CStr, room: &'a mut [u8; PATH_MAX]) -> Option<&'a CStr> {
    let guarded = match is_journal(path.to_bytes()) {
        true => sys::exists(dir, join(path, MARKER, room)?),
        false => sys::fstatat(dir, path, libc::AT_SYMLINK_NOFOLLOW).is_ok_and(|stat| stat.stands_in),
    };
    if !guarded || session::engine().is_none() {
        return None;
    }
    join(path, SUFFIX, room)
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
/// As for [`with`].
#[inline]
pub unsafe fn is_clear_of(dir: c_int, path: *const c_char) -> bool {
    // SAFETY: the caller's.
    unsafe { with(dir, path, |real| core::ptr::eq(real, path)) }
}
