//! fcntl: duplicates, and the flags that were taken off. ioctl: reflinks.
//!
//! Both are variadic in C. On x86-64 and aarch64 Linux a variadic integer argument travels in the same
//! register as a named one, so three fixed arguments receive them.

use core::ffi::{c_int, c_ulong};

use seawall_core::Errno;

use super::close_dup::copied;
use super::{entry, real_or};
use crate::classify::{self, Intent, Kind};
use crate::fdtable::{self, FdEntry, mark};
use crate::sys::{self, unsafe_call};
use crate::{cached, errno};

entry! {
    /// Waiting for a lock is a cancellation point; in libc, where it waits.
    fn fcntl | fcntl64 | __fcntl (fd: c_int, command: c_int, arg: usize) -> c_int,
        passes if { matches!(command, libc::F_SETLKW | libc::F_OFD_SETLKW) }
    {
        if command == libc::F_GETOWN {
            // libc tells a process group from an error.
            return real_or!(-1, c"fcntl", fn(fd: c_int, command: c_int, arg: usize) -> c_int);
        }
        errno::int(control(fd, command, arg))
    }

    fn ioctl (fd: c_int, request: c_ulong, arg: usize) -> c_int, passes if { !changes_content(request) } {
        errno::int(device(fd, request, arg))
    }
}

/// fcntl(2).
pub fn control(fd: c_int, command: c_int, arg: usize) -> Result<usize, Errno> {
    let call = || unsafe_call!(SYS_fcntl, fd, command, arg);
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => copied(fd, call()),
        libc::F_GETFL => call().map(|flags| flags | stripped(fdtable::get(fd)) as usize),
        libc::F_SETFL => {
            let done = set_flags(fd, arg as c_int);
            // It may be read past the page cache now.
            cached::reset(fd);
            done
        }
        _ => call(),
    }
}

/// The open flags that were taken off this descriptor.
fn stripped(entry: FdEntry) -> c_int {
    let of = |mark, flag| if entry.has(mark) { flag } else { 0 };
    of(mark::SYNC, libc::O_SYNC) | of(mark::DSYNC, libc::O_DSYNC) | of(mark::DIRECT, libc::O_DIRECT)
}

/// O_DIRECT stays off while the file is managed; O_APPEND is noted for every number of the file. (The
/// kernel ignores O_SYNC and O_DSYNC here, and so do we.)
fn set_flags(fd: c_int, flags: c_int) -> Result<usize, Errno> {
    let Kind::Managed(target) = classify::look_up_or_register(fd, Intent::Write) else {
        return unsafe_call!(SYS_fcntl, fd, libc::F_SETFL, flags);
    };
    let before = sys::flags(fd)?;
    let direct = flags & libc::O_DIRECT != 0;
    let really_direct = before & libc::O_DIRECT != 0;
    let passed = if direct && !really_direct { flags & !libc::O_DIRECT } else { flags };
    let done = unsafe_call!(SYS_fcntl, fd, libc::F_SETFL, passed)?;
    fdtable::set(fd, fdtable::get(fd).with(mark::DIRECT, direct && !really_direct));
    if (before ^ flags) & libc::O_APPEND != 0 {
        let appends = |fd| sys::flags(fd).is_ok_and(|flags| flags & libc::O_APPEND != 0);
        fdtable::update(target.file, |fd, entry| entry.with(mark::APPEND, appends(fd)));
    }
    Ok(done)
}

/// ioctl(2): the ones that change a regular file's content make it leave the log.
pub fn device(fd: c_int, request: c_ulong, arg: usize) -> Result<usize, Errno> {
    match changes_content(request) {
        true => classify::pass(fd, || unsafe_call!(SYS_ioctl, fd, request, arg)),
        false => unsafe_call!(SYS_ioctl, fd, request, arg),
    }
}

/// FICLONE and its like have type 0x94, XFS's and the generic space calls 'X', ext4's and the generic
/// attribute calls 'f'.
fn changes_content(request: c_ulong) -> bool {
    matches!((request >> 8) & 0xff, 0x94 | 0x58 | 0x66)
}
