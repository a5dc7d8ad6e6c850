//! The guards of P5, from the inside: under Seawall a path that a guard blocks leads to the real file.
//!
//! ```text
//! …/PG_VERSION   →  …/PG_VERSION.seawall    if that exists
//! X-journal      →  X-journal.seawall       if X-journal is a directory with a file .seawall in it
//! ```
//!
//! Only in a process that has joined the log: one that cannot must meet the guard.

use core::ffi::{CStr, c_char, c_int};

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
    path.ends_with(b"-journal") || is_version(path)
}

fn is_version(path: &[u8]) -> bool {
    path.strip_suffix(b"PG_VERSION").is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
}

#[cold]
fn redirect<'a>(dir: c_int, path: &CStr, room: &'a mut [u8; PATH_MAX]) -> Option<&'a CStr> {
    let sign = if is_version(path.to_bytes()) { SUFFIX } else { MARKER };
    if !sys::exists(dir, join(path, sign, room)?) || session::engine().is_none() {
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
