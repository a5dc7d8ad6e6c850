//! Sizes of files that have no records.

use core::ffi::c_int;

use seawall_core::format::NAME_MAX;
use seawall_core::{Errno, Scope};
use seawall_wire::shm::Preset;

use super::capture::settle;
use super::here::{engine, parent};
use crate::cached;
use crate::sys::{self, Stat};

/// Runs a change of the size of the file behind `fd` that the log has no record of. In a directory that is in the log it is
/// durable when this returns.
///
/// A file system with a journal makes it durable with the next sync of whichever file, and programs rely on that: RocksDB cuts a
/// table that it wrote through a mapping after its sync, and then syncs what says how long the table is. Here that sync may be
/// a record alone. Presets of programs that sync what they cut have no need of this.
///
/// # Errors
/// The call's, or what the disk says.
pub fn resizing(fd: c_int, call: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
    if engine().is_none() {
        return call();
    }
    let before = sys::fstat(fd);
    call()?;
    let now = sys::fstat(fd)?;
    if before.is_ok_and(|before| before.size == now.size) || !is_in_any_programs_directory(fd, &now) {
        return Ok(());
    }
    cached::sync(fd, || sys::sync(fd, Scope::Whole))?;
    settle(fd, &now, true)
}

fn is_in_any_programs_directory(fd: c_int, stat: &Stat) -> bool {
    let (mut link, mut whole) = ([0; libc::PATH_MAX as usize], [0; libc::PATH_MAX as usize]);
    let mut room = [0; NAME_MAX + 1];
    let path = if stat.regular && stat.links > 0 { sys::name_of(fd, &mut link) } else { None };
    path.and_then(|path| sys::copied(path, &mut whole))
        .and_then(|path| parent(libc::AT_FDCWD, path, &mut room))
        .is_some_and(|(here, _)| here.preset == Preset::Any)
}
