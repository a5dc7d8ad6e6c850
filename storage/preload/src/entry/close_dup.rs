//! close, dup and their kin: the table follows the numbers.

use core::ffi::{c_int, c_uint};

use seawall_core::Errno;

use super::{entry, point, real_or};
use crate::fdtable::{self, State};
use crate::sys::unsafe_call;
use crate::{errno, kept, unseen};

const CLOSE_RANGE_CLOEXEC: c_uint = 4;

point! {
    fn close | __close (fd: c_int) -> c_int, passes if { is_forgotten(fd) } { errno::int(shut(fd)) }
}

entry! {
    fn close_range (first: c_uint, last: c_uint, flags: c_int) -> c_int {
        errno::int(shut_range(first, last, flags as c_uint))
    }

    fn closefrom (first: c_int) {
        let from = first.max(0) as u32;
        if kept::kept_in(from, u32::MAX).is_some() && shut_range(from, u32::MAX, 0).is_ok() {
            return;
        }
        fdtable::reset_range(from, u32::MAX);
        real_or!((), c"closefrom", fn(first: c_int) -> ())
    }

    fn dup (old: c_int) -> c_int { errno::int(copied(old, unsafe_call!(SYS_dup, old))) }

    fn dup2 | __dup2 (old: c_int, new: c_int) -> c_int { errno::int(onto(old, new)) }

    fn dup3 (old: c_int, new: c_int, flags: c_int) -> c_int { errno::int(onto_with(old, new, flags)) }
}

/// True if nothing has to be remembered of `fd` should its thread be cancelled before it is closed; then nothing is.
fn is_forgotten(fd: c_int) -> bool {
    let is_simple =
        matches!(fdtable::get(fd).state(), State::Unknown | State::Unmanaged) && !kept::is_kept(fd);
    if is_simple {
        fdtable::reset(fd);
    }
    is_simple
}

/// close(2). The entry goes first: the number may be another thread's at once.
pub fn shut(fd: c_int) -> Result<usize, Errno> {
    if kept::is_kept(fd) {
        return Err(Errno::BADF);
    }
    fdtable::reset(fd);
    unsafe_call!(SYS_close, fd)
}

/// close_range(2); descriptors of ours stay.
pub fn shut_range(first: c_uint, last: c_uint, flags: c_uint) -> Result<usize, Errno> {
    let Some(kept) = kept::kept_in(first, last) else { return shut_all(first, last, flags) };
    let mut done = Ok(0);
    if first < kept {
        done = shut_range(first, kept - 1, flags);
    }
    if kept < last {
        done = done.and(shut_range(kept + 1, last, flags));
    }
    done
}

fn shut_all(first: c_uint, last: c_uint, flags: c_uint) -> Result<usize, Errno> {
    if flags & CLOSE_RANGE_CLOEXEC == 0 && first <= last {
        fdtable::reset_range(first, last);
    }
    unsafe_call!(SYS_close_range, first, last, flags)
}

/// dup2(2).
pub fn onto(old: c_int, new: c_int) -> Result<usize, Errno> {
    if old == new {
        return unsafe_call!(SYS_fcntl, old, libc::F_GETFD).map(|_| new as usize);
    }
    onto_with(old, new, 0)
}

/// dup3(2).
pub fn onto_with(old: c_int, new: c_int, flags: c_int) -> Result<usize, Errno> {
    kept::make_way(new);
    copied(old, unsafe_call!(SYS_dup3, old, new, flags))
}

/// A duplicate of `old` was made.
pub fn copied(old: c_int, made: Result<usize, Errno>) -> Result<usize, Errno> {
    if let Ok(new) = made {
        fdtable::copy(old, new as c_int);
        if unseen::may_be_any() {
            crate::classify::hold_for_life(new as c_int);
        }
    }
    made
}
