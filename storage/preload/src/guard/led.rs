//! Calls on a path where a guard may stand, while the daemon may raise or lower it.
//!
//! A guard comes and goes by one rename, so at every moment the true file has one of two names. A call goes to the one that it had
//! a moment ago. If the guard has come or gone since, then
//!
//! | the call | was led | what is done |
//! |---|---|---|
//! | failed | either way | it is made again: it has changed nothing |
//! | looked, opened, changed attributes | to the path | it may have met the guard: it is made again |
//! | made a file, or gave one this name | beside the guard | the file gets its true name |
//! | took a file's name | from the path | it may have taken the guard: the true file's name is taken too |
//!
//! It ends, because each time around the daemon has moved a guard.

use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::Ordering::SeqCst;

use seawall_core::naming::How;
use seawall_core::{Errno, stand_in};

use super::{PATH_MAX, SUFFIX, absent, guarded, is_marked, join, redirect, room};
use crate::sys::{self, unsafe_call};
use crate::{app, errno, named, session};

const RENAME_NOREPLACE: u32 = 1;

/// What a call returns to the program.
pub trait Answer {
    /// True if it has changed nothing.
    fn has_failed(&self) -> bool;
}

impl Answer for Result<usize, Errno> {
    fn has_failed(&self) -> bool {
        self.is_err()
    }
}

impl Answer for c_int {
    fn has_failed(&self) -> bool {
        *self == -1
    }
}

impl Answer for *mut libc::FILE {
    fn has_failed(&self) -> bool {
        self.is_null()
    }
}

/// Where the true file of a name was a moment ago.
struct Place<'a> {
    dir: c_int,
    name: &'a CStr,
    /// How often guards had moved before.
    moves: Option<u64>,
    /// Beside its guard.
    aside: Option<&'a CStr>,
}

/// How often guards have moved. Odd while one does. `None`: this process has not joined the log, and may.
fn moves() -> Option<u64> {
    session::joined().map(|engine| engine.shm().header().guard_moves().load(SeqCst))
}

impl<'a> Place<'a> {
    fn path(&self) -> *const c_char {
        self.aside.unwrap_or(self.name).as_ptr()
    }

    fn find(dir: c_int, name: &'a CStr, room: &'a mut [u8; PATH_MAX]) -> Self {
        let moves = moves();
        Self { dir, name, moves, aside: redirect(dir, name, room) }
    }

    /// True if the guard has come or gone since.
    fn has_moved(&self) -> bool {
        let now = moves();
        // While one moves, which may take a while, the files are asked: the daemon may have died over it.
        let is_certain = self.moves.is_some() && now.is_some_and(|moves| moves % 2 == 0);
        let is_seen = || redirect(self.dir, self.name, &mut room()).is_some() != self.aside.is_some();
        self.moves.is_some() && now != self.moves || !is_certain && errno::kept(is_seen)
    }

    /// An absent journal there is removed for good.
    fn clear(&self) {
        if let Some(aside) = self.aside
            && let Some(absent) = absent(self.dir, aside)
        {
            let _ = absent.unlink(|retire| {
                retire(false);
                unsafe_call!(SYS_unlinkat, self.dir, aside.as_ptr(), 0).map(drop)
            });
        }
    }

    /// The file beside what was the guard gets its true name, if that is free.
    fn give_true_name(&self, aside: &CStr) -> Result<(), Errno> {
        if is_marked(self.dir, aside) {
            return Ok(());
        }
        let (dir, to) = (self.dir, self.name);
        let rename = |_| unsafe_call!(SYS_renameat2, dir, aside.as_ptr(), dir, to.as_ptr(), RENAME_NOREPLACE);
        named::moving((dir, aside), (dir, to), How::Plain, rename).map(drop)
    }

    /// Waits until the file that was moved to where the true one was has its place.
    fn settle(&self, mut give_name: impl FnMut()) {
        soon(|| {
            let mut room = room();
            if let Some(aside) = redirect(self.dir, self.name, &mut room) {
                return sys::exists(self.dir, aside);
            }
            give_name();
            sys::exists(self.dir, self.name)
        });
    }

    /// The file beside what was the guard gets its true name, whatever has it.
    fn replace_true_name(&self, aside: &CStr) {
        let (dir, to) = (self.dir, self.name);
        let rename = |_| unsafe_call!(SYS_renameat, dir, aside.as_ptr(), dir, to.as_ptr());
        // It is about to be the next guard.
        if is_marked(dir, aside) {
            return;
        }
        // Unless the daemon has done so.
        let _ = named::moving((dir, aside), (dir, to), How::Plain, rename);
    }

    fn remove(&self, aside: &CStr) {
        let unlink = |_| unsafe_call!(SYS_unlinkat, self.dir, aside.as_ptr(), 0);
        let _ = named::removing(self.dir, aside, unlink);
    }

    /// The true file that was left behind when a guard's text was taken for it.
    fn left_behind<'r>(&self, room: &'r mut [u8; PATH_MAX]) -> Option<&'r CStr> {
        let is_text = self.aside.is_none() && !stand_in::is_directory(self.name.to_bytes());
        let aside = join(self.name, SUFFIX, room).filter(|_| is_text)?;
        (sys::exists(self.dir, aside) && !is_marked(self.dir, aside)).then_some(aside)
    }
}

/// Makes `step` until it has an answer.
fn until<R>(dir: c_int, name: &CStr, step: impl Fn(&Place<'_>) -> Option<R>) -> R {
    let mut room = room();
    loop {
        if let Some(answer) = step(&Place::find(dir, name, &mut room)) {
            return answer;
        }
    }
}

/// Calls `call` with `path`, or with the path it stands for, until `judge` takes what it returned. An absent journal there is removed
/// for good first.
///
/// # Safety
/// `path` is null or a C string that lives for the call, for this and the following.
#[inline]
unsafe fn judged<R>(
    dir: c_int,
    path: *const c_char,
    call: impl Fn(*const c_char) -> R,
    judge: impl Fn(&Place<'_>, R) -> Option<R>,
) -> R {
    // SAFETY: the caller's.
    let Some(name) = (unsafe { guarded(path) }) else { return call(path) };
    until(dir, name, |place| {
        place.clear();
        judge(place, call(place.path()))
    })
}

/// A call that is made again if it failed where the true file was not.
///
/// # Safety
/// As for [`judged`].
#[inline]
pub unsafe fn with<R: Answer>(dir: c_int, path: *const c_char, call: impl Fn(*const c_char) -> R) -> R {
    let judge = |place: &Place<'_>, done: R| (!done.has_failed() || !place.has_moved()).then_some(done);
    // SAFETY: the caller's.
    unsafe { judged(dir, path, call, judge) }
}

/// A call that is made once, whatever comes or goes.
///
/// # Safety
/// As for [`judged`].
pub unsafe fn once<R>(dir: c_int, path: *const c_char, call: impl FnOnce(*const c_char) -> R) -> R {
    // SAFETY: the caller's.
    let Some(name) = (unsafe { guarded(path) }) else { return call(path) };
    let mut room = room();
    let place = Place::find(dir, name, &mut room);
    place.clear();
    call(place.path())
}

/// A call that may as well be made twice.
///
/// # Safety
/// As for [`judged`].
#[inline]
pub unsafe fn changing<R>(dir: c_int, path: *const c_char, call: impl Fn(*const c_char) -> R) -> R {
    // SAFETY: the caller's.
    unsafe { judged(dir, path, call, settled) }
}

/// The same of a call that looks, and changes nothing: an absent journal is not there.
///
/// # Safety
/// As for [`judged`].
#[inline]
pub unsafe fn looking<R>(dir: c_int, path: *const c_char, call: impl Fn(*const c_char) -> R) -> R {
    // SAFETY: the caller's.
    let Some(name) = (unsafe { guarded(path) }) else { return call(path) };
    until(dir, name, |place| match place.aside {
        Some(aside) if absent(dir, aside).is_some() => {
            let mut nowhere = room();
            Some(call(join(aside, SUFFIX, &mut nowhere).unwrap_or(aside).as_ptr()))
        }
        _ => settled(place, call(place.path())),
    })
}

fn settled<R>(place: &Place<'_>, done: R) -> Option<R> {
    (!place.has_moved()).then_some(done)
}

/// A call that opens the file at a path, and may make it. `number` is the descriptor of what it opened, and `close` gives that up.
///
/// # Safety
/// As for [`judged`].
pub unsafe fn opening<R: Answer>(
    dir: c_int,
    path: *const c_char,
    call: impl Fn(*const c_char) -> R,
    number: impl Fn(&R) -> Option<c_int>,
    close: impl Fn(R),
) -> R {
    let judge = |place: &Place<'_>, done: R| {
        if !place.has_moved() {
            return Some(done);
        }
        if done.has_failed() {
            return None;
        }
        match errno::kept(|| is_right(place, number(&done))) {
            true => Some(done),
            false => {
                errno::kept(|| close(done));
                None
            }
        }
    };
    // SAFETY: the caller's.
    unsafe { judged(dir, path, call, judge) }
}

/// The guard has come or gone while `fd` was opened. True if it is the true file, which has its place then.
fn is_right(place: &Place<'_>, fd: Option<c_int>) -> bool {
    let Some(opened) = fd.and_then(|fd| sys::fstat(fd).ok()) else { return true };
    let is_at = |path: &CStr| {
        sys::fstatat(place.dir, path, 0).is_ok_and(|found| (found.dev, found.ino) == (opened.dev, opened.ino))
    };
    let mut room = room();
    match (place.aside, redirect(place.dir, place.name, &mut room)) {
        (None, Some(aside)) => is_at(aside),
        (None, None) => is_at(place.name),
        (Some(before), _) => {
            let mut is_taken = false;
            let is_placed = || match redirect(place.dir, place.name, &mut room) {
                Some(aside) => is_at(aside),
                None => {
                    is_taken |= is_at(before) && place.give_true_name(before) == Err(Errno::EXIST);
                    is_taken || is_at(place.name)
                }
            };
            let is_placed = soon(is_placed) && !is_taken;
            // It was made where the true file was, and that has its name back.
            if is_taken && opened.regular && opened.size == 0 && is_at(before) {
                place.remove(before);
            }
            is_placed
        }
    }
}

/// Waits for what the daemon is doing this moment, unless it was stopped.
fn soon(mut is_so: impl FnMut() -> bool) -> bool {
    for _ in 0..100 {
        if is_so() {
            return true;
        }
        sys::nap_ns(100_000);
    }
    false
}

/// A call that gives a file this name, and takes it from what has it.
///
/// # Safety
/// As for [`judged`].
pub unsafe fn moving_to<R: Answer>(dir: c_int, path: *const c_char, call: impl Fn(*const c_char) -> R) -> R {
    let has_name = |place: &Place<'_>, aside: &CStr| {
        place.settle(|| place.replace_true_name(aside));
        true
    };
    // SAFETY: the caller's.
    unsafe { giving(dir, path, call, has_name) }
}

/// A call that gives a file one more name, this one, if that is free.
///
/// # Safety
/// As for [`judged`].
pub unsafe fn linking_to<R: Answer>(dir: c_int, path: *const c_char, call: impl Fn(*const c_char) -> R) -> R {
    let has_name = |place: &Place<'_>, aside: &CStr| {
        let mut is_taken = false;
        place.settle(|| is_taken |= place.give_true_name(aside) == Err(Errno::EXIST));
        if is_taken {
            place.remove(aside);
        }
        !is_taken
    };
    // SAFETY: the caller's.
    unsafe { giving(dir, path, call, has_name) }
}

/// `has_name` gives what got the name beside a guard that is no more its true one. False: that is another file's.
unsafe fn giving<R: Answer>(
    dir: c_int,
    path: *const c_char,
    call: impl Fn(*const c_char) -> R,
    has_name: impl Fn(&Place<'_>, &CStr) -> bool,
) -> R {
    let judge = |place: &Place<'_>, done: R| {
        if !place.has_moved() {
            return Some(done);
        }
        if done.has_failed() {
            return None;
        }
        let has_name = place.aside.is_none_or(|aside| errno::kept(|| has_name(place, aside)));
        has_name.then_some(done)
    };
    // SAFETY: the caller's.
    unsafe { judged(dir, path, call, judge) }
}

/// A call that removes this name.
///
/// # Safety
/// As for [`judged`].
pub unsafe fn removing<R: Answer>(dir: c_int, path: *const c_char, call: impl Fn(*const c_char) -> R) -> R {
    // SAFETY: the caller's.
    unsafe {
        taking(dir, path, &call, |left| {
            call(left.as_ptr());
        })
    }
}

/// A call that takes a file from this name to another one.
///
/// # Safety
/// As for [`judged`].
pub unsafe fn moving_from<R: Answer>(
    dir: c_int,
    path: *const c_char,
    to: (c_int, *const c_char),
    call: impl Fn(*const c_char) -> R,
) -> R {
    let follow = |left: &CStr| {
        // SAFETY: the caller's.
        let guard = unsafe { app::path(to.1) }.filter(|new| is_marked(to.0, new));
        let _ = match guard {
            Some(new) => {
                let rename = |_| unsafe_call!(SYS_renameat, dir, left.as_ptr(), to.0, new.as_ptr());
                named::moving((dir, left), (to.0, new), How::Plain, rename).map(drop)
            }
            // The file had replaced the text, so this is older: with the next guard it would be the true one again.
            None => {
                named::removing(dir, left, |_| unsafe_call!(SYS_unlinkat, dir, left.as_ptr(), 0)).map(drop)
            }
        };
    };
    // SAFETY: the caller's.
    unsafe { taking(dir, path, call, follow) }
}

/// `follow` is called with what was left behind, if the call took a guard instead.
unsafe fn taking<R: Answer>(
    dir: c_int,
    path: *const c_char,
    call: impl Fn(*const c_char) -> R,
    follow: impl Fn(&CStr),
) -> R {
    let judge = |place: &Place<'_>, done: R| {
        if done.has_failed() {
            return (!place.has_moved()).then_some(done);
        }
        let mut room = room();
        if let Some(left) = errno::kept(|| place.left_behind(&mut room)) {
            errno::kept(|| follow(left));
        }
        Some(done)
    };
    // SAFETY: the caller's.
    unsafe { judged(dir, path, call, judge) }
}
