//! ftw(3) and nftw(3). Libc reads the directories by functions of its own, so what it found is judged on its way to the
//! program: a guard is left out, with what is in it, and the true file beside it has its own name.
//!
//! The program's function gets no argument of the program's: which one is meant, libc's thread-specific data says.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use libc::{AT_FDCWD, pthread_key_t, stat};
use seawall_core::stand_in;

use super::{entry, real_or};
use crate::guard::{self, Shown};
use crate::{errno, session, sys};

/// A directory, before what is in it.
const FTW_D: c_int = 1;
const FTW_CHDIR: c_int = 4;
/// What the function returns says how to go on.
const FTW_ACTIONRETVAL: c_int = 16;
const FTW_CONTINUE: c_int = 0;
const FTW_SKIP_SUBTREE: c_int = 2;
const PATH_MAX: usize = libc::PATH_MAX as usize;

/// The functions of ftw and nftw.
type Plain = unsafe extern "C" fn(*const c_char, *const stat, c_int) -> c_int;
type Full = unsafe extern "C" fn(*const c_char, *const stat, c_int, *mut c_void) -> c_int;

entry! {
    fn ftw | ftw64 (path: *const c_char, function: *const c_void, most: c_int) -> c_int {
        let go = |path, function| real_or!(-1, c"ftw",
            fn(path: *const c_char, function: *const c_void, most: c_int) -> c_int);
        match is_judged() {
            true => Walk { function: Function::Plain(function), flags: 0 }.run(path, |path| go(path, plain_step as _)),
            false => go(path, function),
        }
    }

    fn nftw | nftw64 (path: *const c_char, function: *const c_void, most: c_int, flags: c_int) -> c_int {
        let go = |path, function| real_or!(-1, c"nftw",
            fn(path: *const c_char, function: *const c_void, most: c_int, flags: c_int) -> c_int);
        match is_judged() {
            true => Walk { function: Function::Full(function), flags }.run(path, |path| go(path, full_step as _)),
            false => go(path, function),
        }
    }
}

/// The program's function.
enum Function {
    /// Of ftw: a [`Plain`].
    Plain(*const c_void),
    /// Of nftw: a [`Full`].
    Full(*const c_void),
}

/// A walk that is under way.
struct Walk {
    function: Function,
    flags: c_int,
}

/// Something that libc found.
struct Found<'a> {
    path: &'a CStr,
    status: *const stat,
    kind: c_int,
    level: *mut c_void,
}

impl Walk {
    /// Goes through the tree at `path`, or at the true file beside a guard.
    ///
    /// # Safety
    /// As nftw(3).
    unsafe fn run(self, path: *const c_char, go: impl FnOnce(*const c_char) -> c_int) -> c_int {
        let outer = current();
        set_current(&raw const self);
        // SAFETY: the caller's.
        let answer = unsafe { guard::once(AT_FDCWD, path, go) };
        set_current(outer);
        answer
    }

    /// Hands `found` on to the program, unless it is a guard's.
    ///
    /// # Safety
    /// As libc calls a function of nftw(3).
    unsafe fn hand_on(&self, found: &Found<'_>) -> c_int {
        let whole = found.path.to_bytes();
        let base = sys::base_at(whole);
        // Where the working directory goes along, the last part is the path.
        let at = if self.flags & FTW_CHDIR == 0 { 0 } else { base };
        let name = &found.path[at..];
        let mut room = [0; PATH_MAX];
        match errno::kept(|| guard::shown(AT_FDCWD, name)) {
            Shown::Not => self.skip(found.kind),
            _ if errno::kept(|| self.is_in_a_guard(whole, base)) => FTW_CONTINUE,
            // SAFETY: the caller's.
            Shown::Plain => unsafe { self.call(found.path, found) },
            Shown::As(len) => match sys::copied(&whole[..at + len], &mut room) {
                // SAFETY: the caller's.
                Some(path) => unsafe { self.call(path, found) },
                None => FTW_CONTINUE,
            },
        }
    }

    fn skip(&self, kind: c_int) -> c_int {
        if kind == FTW_D && self.flags & FTW_ACTIONRETVAL != 0 { FTW_SKIP_SUBTREE } else { FTW_CONTINUE }
    }

    /// True if the directory that the last part of `whole` is in is a guard.
    fn is_in_a_guard(&self, whole: &[u8], base: usize) -> bool {
        let Some(parent) = base.checked_sub(1).map(|slash| &whole[..slash]) else { return false };
        if !stand_in::is_directory(parent) {
            return false;
        }
        let mut room = [0; PATH_MAX];
        match self.flags & FTW_CHDIR {
            0 => sys::copied(parent, &mut room).is_some_and(|parent| guard::is_up(AT_FDCWD, parent)),
            _ => sys::exists(AT_FDCWD, c".seawall"),
        }
    }

    unsafe fn call(&self, path: &CStr, found: &Found<'_>) -> c_int {
        // SAFETY: the program's function, of the type that it must have, with what libc gave.
        unsafe {
            match self.function {
                Function::Plain(at) => {
                    transmute::<*const c_void, Plain>(at)(path.as_ptr(), found.status, found.kind)
                }
                Function::Full(at) => {
                    transmute::<*const c_void, Full>(at)(path.as_ptr(), found.status, found.kind, found.level)
                }
            }
        }
    }
}

unsafe extern "C" fn plain_step(path: *const c_char, status: *const stat, kind: c_int) -> c_int {
    // SAFETY: libc's arguments.
    unsafe { full_step(path, status, kind, ptr::null_mut()) }
}

unsafe extern "C" fn full_step(
    path: *const c_char,
    status: *const stat,
    kind: c_int,
    level: *mut c_void,
) -> c_int {
    let walk = current();
    // SAFETY: `run` of this thread has set it and waits for libc to return; libc's arguments.
    let answer = unsafe { (*walk).hand_on(&Found { path: CStr::from_ptr(path), status, kind, level }) };
    // The program may have left another walk by a jump.
    set_current(walk);
    answer
}

/// True if there are guards to be left out, and a place for the walk.
fn is_judged() -> bool {
    !session::is_off() && key().is_some()
}

/// The walk that this thread is in.
fn current() -> *const Walk {
    // SAFETY: a key that was made; what is there is what `set_current` put there, or null.
    key().map_or(ptr::null(), |key| unsafe { libc::pthread_getspecific(key) }.cast())
}

fn set_current(walk: *const Walk) {
    if let Some(key) = key() {
        // SAFETY: a key that was made.
        unsafe { libc::pthread_setspecific(key, walk.cast()) };
    }
}

/// The key of the walk in libc's thread-specific data, made by the first walk.
fn key() -> Option<pthread_key_t> {
    /// The key plus one; 0: none yet.
    static KEY: AtomicU32 = AtomicU32::new(0);
    let known = KEY.load(Relaxed);
    if known != 0 {
        return Some(known - 1);
    }
    let mut made: pthread_key_t = 0;
    // SAFETY: a live integer, and no destructor.
    if unsafe { libc::pthread_key_create(&raw mut made, None) } != 0 {
        return None;
    }
    match KEY.compare_exchange(0, made + 1, Relaxed, Relaxed) {
        Ok(_) => Some(made),
        Err(others) => {
            // SAFETY: made here, and nobody has seen it.
            unsafe { libc::pthread_key_delete(made) };
            Some(others - 1)
        }
    }
}
