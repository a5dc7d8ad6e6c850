//! Calls on a path where a guard may stand, while the daemon may raise or lower it.
//!
//! A call finds out where the true file is, which has one of two names, and then acts on it by one system call ([`act`]), beside which
//! no guard moves ([`seawall_core::guards`]). If one has moved in between, that system call is not made, and all is done anew. It ends,
//! because each time around the daemon has moved a guard.
//!
//! A call that only looks does not keep the guards where they are. It looks anew if one has moved.
//!
//! Not handled here: a process that cannot join the log acts as one without Seawall does.

use core::ffi::{CStr, c_char, c_int};

use seawall_core::{Engine, Errno};

use super::{SUFFIX, absent, guarded, join, redirect, room};
use crate::sys::{self, unsafe_call};
use crate::{errno, owner, session};

/// What a call returns to the program.
pub trait Answer {
    /// True if it has changed nothing.
    fn has_failed(&self) -> bool;

    /// It was not made.
    fn not_made() -> Self;
}

/// No call that is made here ends with it.
const NOT_MADE: Errno = Errno::RESTART;

impl<T> Answer for Result<T, Errno> {
    fn has_failed(&self) -> bool {
        self.is_err()
    }

    fn not_made() -> Self {
        Err(NOT_MADE)
    }
}

impl Answer for c_int {
    fn has_failed(&self) -> bool {
        *self == -1
    }

    fn not_made() -> Self {
        errno::set(NOT_MADE);
        -1
    }
}

impl Answer for *mut libc::FILE {
    fn has_failed(&self) -> bool {
        self.is_null()
    }

    fn not_made() -> Self {
        errno::set(NOT_MADE);
        core::ptr::null_mut()
    }
}

/// Where a call's path leads.
#[derive(Clone, Copy)]
pub struct Led {
    path: *const c_char,
    /// How often guards had moved before that was found out. `None`: none can come there.
    since: Option<u64>,
}

impl Led {
    /// The path.
    pub fn path(self) -> *const c_char {
        self.path
    }

    /// Makes the one system call by which a call acts on it.
    pub fn act<R: Answer>(self, call: impl FnOnce() -> R) -> R {
        act([self], call)
    }
}

/// Makes the one system call by which a call acts on these paths, unless a guard has moved since they were found. It asks the daemon for
/// nothing.
pub fn act<R: Answer, const N: usize>(on: [Led; N], call: impl FnOnce() -> R) -> R {
    let mut since = on.iter().filter_map(|led| led.since);
    let Some(first) = since.next() else { return call() };
    // The count of a vfork child would be its parent's, should it be killed.
    let Some(engine) = session::joined().filter(|_| !owner::in_vfork_child()) else { return call() };
    let Some(who) = owner::current(engine) else { return call() };
    let is_same = since.all(|other| other == first);
    match engine.guards().stand_still(who, first).filter(|_| is_same) {
        Some(_still) => call(),
        None => R::not_made(),
    }
}

/// Where the true file of a name is.
struct Place<'a> {
    dir: c_int,
    name: &'a CStr,
    /// How often guards had moved before that was found out. `None`: this process has not joined the log.
    since: Option<u64>,
    /// Beside its guard.
    aside: Option<&'a CStr>,
}

impl<'a> Place<'a> {
    fn find(
        engine: Option<&Engine>,
        (dir, name): (c_int, &'a CStr),
        room: &'a mut [u8; super::PATH_MAX],
    ) -> Self {
        let since = engine.map(|engine| engine.guards().wait(sys::nap_ns));
        Self { dir, name, since, aside: redirect(dir, name, room) }
    }

    fn led(&self) -> Led {
        self.by(self.aside.unwrap_or(self.name))
    }

    fn by(&self, path: &CStr) -> Led {
        Led { path: path.as_ptr(), since: self.since }
    }

    /// True if a guard has come or gone since.
    fn has_moved(&self) -> bool {
        self.since.is_some() && self.since != session::joined().map(|engine| engine.guards().moves())
    }

    /// An absent journal there is removed for good.
    fn clear(&self) {
        if let Some(aside) = self.aside
            && let Some(absent) = absent(self.dir, aside)
        {
            let _ = absent.unlink(|retire| {
                retire(false);
                self.by(aside).act(|| unsafe_call!(SYS_unlinkat, self.dir, aside.as_ptr(), 0)).map(drop)
            });
        }
    }
}

/// Calls `call` with where `path` leads, until it has acted there, or has failed where no guard has moved. An absent journal there is
/// removed for good first.
///
/// # Safety
/// `path` is null or a C string that lives for the call, for this and the following.
#[inline]
pub unsafe fn acting<R: Answer>(dir: c_int, path: *const c_char, call: impl Fn(Led) -> R) -> R {
    // SAFETY: the caller's.
    let Some(name) = (unsafe { guarded(path) }) else { return call(Led { path, since: None }) };
    let mut room = room();
    loop {
        let place = Place::find(session::engine(), (dir, name), &mut room);
        place.clear();
        let done = call(place.led());
        if !done.has_failed() || !errno::kept(|| place.has_moved()) {
            return done;
        }
    }
}

/// A call that is made once, whatever comes or goes.
///
/// # Safety
/// As for [`acting`].
pub unsafe fn once<R>(dir: c_int, path: *const c_char, call: impl FnOnce(*const c_char) -> R) -> R {
    // SAFETY: the caller's.
    let Some(name) = (unsafe { guarded(path) }) else { return call(path) };
    let mut room = room();
    let place = Place::find(session::joined(), (dir, name), &mut room);
    place.clear();
    call(place.led().path())
}

/// A call that looks, and changes nothing: an absent journal is not there.
///
/// # Safety
/// As for [`acting`].
#[inline]
pub unsafe fn looking<R>(dir: c_int, path: *const c_char, call: impl Fn(*const c_char) -> R) -> R {
    // SAFETY: the caller's.
    let Some(name) = (unsafe { guarded(path) }) else { return call(path) };
    let mut room = room();
    loop {
        let place = Place::find(session::joined(), (dir, name), &mut room);
        let done = match place.aside {
            Some(aside) if absent(dir, aside).is_some() => {
                let mut nowhere = self::room();
                call(join(aside, SUFFIX, &mut nowhere).unwrap_or(aside).as_ptr())
            }
            _ => call(place.led().path()),
        };
        if !errno::kept(|| place.has_moved()) {
            return done;
        }
    }
}
