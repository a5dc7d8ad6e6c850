//! All that a small file has, for a record.

use core::ffi::{CStr, c_int};

use seawall_core::Errno;
use seawall_core::naming::{LARGEST, has_attributes};

use crate::sys::{self, unsafe_call};

/// What of it fits on the stack.
const SMALL: usize = 8 << 10;

/// Calls `op` with all that the file at `name` has, if it is the one with this inode still. While somebody has locks on it, this
/// process maybe, it is not read: to close the descriptor would drop them. That one stays open.
pub(super) fn content_at<R>(
    dir: c_int,
    name: &CStr,
    inode: (u64, u64),
    op: impl FnOnce(&[u8]) -> R,
) -> Option<R> {
    let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let fd = sys::openat(dir, name, flags, 0).ok()?;
    if has_locks(fd) {
        return None;
    }
    let stat = sys::fstat(fd).ok().filter(|is| (is.dev, is.ino) == inode && is.size <= LARGEST as u64);
    let stat = stat.filter(|_| !has_attributes(sys::borrow(fd)));
    let done = stat.and_then(|stat| read_whole(fd, stat.size, op).ok());
    sys::close(fd);
    done
}

/// Calls `op` with all that the file behind `fd` has. `None`: it cannot be read, or is too large.
pub(super) fn with_content<R>(fd: c_int, size: u64, mut op: impl FnMut(&[u8]) -> Option<R>) -> Option<R> {
    match read_whole(fd, size, &mut op) {
        // It was opened for writing alone.
        Err(Errno::BADF) => {}
        done => return done.ok().flatten(),
    }
    if has_locks(fd) {
        return None;
    }
    let mut link = [0; 32];
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let again = sys::openat(libc::AT_FDCWD, sys::proc_link(fd, &mut link)?, flags, 0).ok()?;
    let done = read_whole(again, size, op);
    sys::close(again);
    done.ok().flatten()
}

/// True if somebody, this process maybe, has locks on ranges of the file, which closing another descriptor of it would drop.
/// Asked for an open file description's lock, with which a process's own locks conflict too.
fn has_locks(fd: c_int) -> bool {
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as _,
        l_whence: libc::SEEK_SET as _,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    let asked = unsafe_call!(SYS_fcntl, fd, libc::F_OFD_GETLK, &raw mut lock);
    asked.is_err() || lock.l_type != libc::F_UNLCK as libc::c_short
}

fn read_whole<R>(fd: c_int, size: u64, op: impl FnOnce(&[u8]) -> R) -> Result<R, Errno> {
    if size < SMALL as u64 {
        let mut small = [0; SMALL];
        let len = read_all(fd, &mut small)?;
        return Ok(op(&small[..len]));
    }
    let read = sys::with_pages(LARGEST + 1, |pages| {
        let len = read_all(fd, pages)?;
        Ok(op(&pages[..len]))
    });
    read.unwrap_or(Err(Errno::NOMEM))
}

/// How much it has. EFBIG: more than there is room for.
fn read_all(fd: c_int, room: &mut [u8]) -> Result<usize, Errno> {
    let mut len = 0;
    loop {
        let rest = room.get_mut(len..).filter(|rest| !rest.is_empty()).ok_or(Errno::FBIG)?;
        let wanted = rest.len();
        let n = unsafe_call!(SYS_pread64, fd, rest.as_mut_ptr(), wanted, len)?;
        len += n;
        // Of a file less is read only at its end.
        if n < wanted {
            return Ok(len);
        }
    }
}
