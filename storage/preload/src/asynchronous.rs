//! Files that this process writes by asynchronous requests (libaio, io_uring, POSIX aio): such a write ends at
//! a time of its own, so its file stays out of the log until the process ends.
//!
//! Input: the descriptor of a request that is about to be submitted. Invariant: when [`announce`] has returned,
//! the file behind it is held, or is noted and will be held should this process ever find it managed. Other
//! files are not touched.

use core::ffi::c_int;

use crate::classify::{self, Intent, Kind, find, hold_for_life};
use crate::fdtable::{self, FdEntry, State, mark};
use crate::{log, sys, unseen};

/// `RWF_DSYNC` of a request.
const RWF_DSYNC: u32 = 2;
/// `RWF_SYNC` of a request.
const RWF_SYNC: u32 = 4;

/// A write through `fd` is about to be submitted: the flags (`RWF_…`) that it must carry, because its
/// descriptor lost O_DSYNC or O_SYNC when the file was managed.
pub fn announce(fd: c_int) -> u32 {
    if log::is_off() {
        return 0;
    }
    if !matches!(classify::look_up_or_register(fd, Intent::Hold), Kind::Managed(_)) {
        note(fd);
    }
    hold_for_life(fd);
    let entry = fdtable::get(fd);
    match (entry.has(mark::SYNC), entry.has(mark::DSYNC)) {
        (true, _) => RWF_SYNC | RWF_DSYNC,
        (false, true) => RWF_DSYNC,
        (false, false) => 0,
    }
}

/// Notes the file of a descriptor that is not managed now.
fn note(fd: c_int) {
    let entry = fdtable::get(fd);
    if entry.state() == State::Unmanaged && entry.has(mark::HELD) {
        return;
    }
    let Some(stat) = sys::fstat(fd).ok().filter(|stat| stat.regular) else { return };
    unseen::note(&stat);
    let registered = log::joined().and_then(|engine| find(engine, &stat)).is_some();
    let entry = fdtable::get(fd);
    if registered {
        fdtable::set(fd, FdEntry::other(State::Unknown, entry.marks()));
    } else if entry.state() == State::Unmanaged {
        fdtable::set(fd, entry.with(mark::HELD, true));
    }
}
