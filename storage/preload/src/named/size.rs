//! Sizes of files that have no records.

use core::ffi::c_int;

use seawall_core::format::NAME_MAX;
use seawall_core::{Errno, Scope, naming};
use seawall_wire::shm::Preset;

use super::capture::{next_lsn, settle};
use super::here::{engine, parent};
use crate::cached;
use crate::sys;

/// Runs a change of the size of the file behind `fd` that the log has no record of, by [`naming::resizing`].
///
/// # Errors
/// Its.
pub fn resizing(fd: c_int, call: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
    if engine().is_none() {
        return call();
    }
    let size = || sys::fstat(fd).map(|stat| stat.size);
    naming::resizing(
        size,
        call,
        || is_any_programs(fd),
        || {
            let since = next_lsn();
            cached::sync(fd, || sys::sync(fd, Scope::Whole))?;
            settle(fd, &sys::fstat(fd)?, Some(since))
        },
    )
}

fn is_any_programs(fd: c_int) -> bool {
    let (mut link, mut whole) = ([0; libc::PATH_MAX as usize], [0; libc::PATH_MAX as usize]);
    let mut room = [0; NAME_MAX + 1];
    let named = sys::fstat(fd).is_ok_and(|stat| stat.regular && stat.links > 0);
    let path = if named { sys::name_of(fd, &mut link) } else { None };
    path.and_then(|path| sys::copied(path, &mut whole))
        .and_then(|path| parent(libc::AT_FDCWD, path, &mut room))
        .is_some_and(|(here, _)| here.preset == Preset::Any)
}
