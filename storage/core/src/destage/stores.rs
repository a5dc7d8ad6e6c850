//! What stores into a file's pages ask of destage: how much of the file they may overwrite, and the times that they leave
//! behind.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use seawall_media::magic;

use crate::file::{Flag, Inside, Slot};

/// Notes how much of a file in the log a store may overwrite, and returns the bytes that were not in that part before.
/// Nobody else is inside.
pub(super) fn measure(inside: &Inside<'_>, fd: BorrowedFd<'_>) -> Range<u64> {
    if !inside.slot().state().has(Flag::TRACKED) {
        return 0..0;
    }
    let solid = if has_set_id(fd) { 0 } else { solid_bytes(fd) };
    let before = inside.measured(solid);
    // A process that sets such a bit on the file takes back afterwards what is noted here: one of the two sees the
    // other.
    if has_set_id(fd) {
        inside.slot().forget_solid();
    }
    before..solid
}

/// A write clears a set-user-id or set-group-id bit, and a store does not.
fn has_set_id(fd: BorrowedFd<'_>) -> bool {
    const SET_ID: u32 = 0o6000;
    rustix::fs::fstat(fd).is_ok_and(|stat| stat.st_mode & SET_ID != 0)
}

/// Has writes published by calls until the file is measured again; returns all its bytes. Nobody else is inside. A
/// store makes dirty again everything that the kernel holds in one piece with its page, some MiB: the sync after the
/// write-out would have everything to write once more, at once, and so would the next one, while the log waits for that
/// disk.
///
/// # Errors
/// If its size cannot be read.
pub(super) fn no_stores(slot: Slot<'_>, fd: BorrowedFd<'_>) -> io::Result<Range<u64>> {
    slot.forget_solid();
    Ok(0..rustix::fs::fstat(fd)?.st_size as u64)
}

/// Moves a file's times if a store was published since. The kernel moves them when a page becomes writable, and not for
/// further stores into that page, so a backup in between would mistake what is stored later for what it already has.
/// Nobody else is inside: every store that was noted is done.
pub(super) fn touch(inside: &Inside<'_>, fd: BorrowedFd<'_>) {
    if !inside.slot().state().has(Flag::STORED) {
        return;
    }
    let [last_access, last_modification] =
        [UTIME_OMIT, UTIME_NOW].map(|tv_nsec| Timespec { tv_sec: 0, tv_nsec });
    if rustix::fs::futimens(fd, &Timestamps { last_access, last_modification }).is_ok() {
        inside.times_are_moved();
    }
}

/// How much of the file, from its start, can be overwritten in place for certain: on ext4, whose blocks are
/// never shared or moved by a write, up to the first hole. The descriptor's position is the daemon's own.
fn solid_bytes(fd: BorrowedFd<'_>) -> u64 {
    let in_place = rustix::fs::fstatfs(fd).is_ok_and(|fs| fs.f_type as u64 == magic::EXT4);
    let first_hole = || rustix::fs::seek(fd, rustix::fs::SeekFrom::Hole(0)).unwrap_or(0);
    if in_place { first_hole() } else { 0 }
}
