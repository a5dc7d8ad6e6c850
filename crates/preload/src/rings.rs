//! io_uring: submissions through shared memory cannot be seen. Once a process has set a ring up, every
//! managed file that it has open for writing stays out of the log until the process ends.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::sys::{self, raw};
use crate::{classify, session};

static ANY: AtomicBool = AtomicBool::new(false);

/// True once this process has set up a ring.
#[inline]
pub fn any() -> bool {
    ANY.load(SeqCst)
}

/// To be called before a ring is set up.
pub fn announce() {
    if !session::is_off() && !ANY.swap(true, SeqCst) {
        hold_all();
    }
}

/// Holds whatever is open, by the names in /proc/self/fd.
pub fn hold_all() {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    let Ok(dir) = sys::openat(libc::AT_FDCWD, c"/proc/self/fd", flags, 0) else {
        return (0..1024).for_each(classify::hold_for_life);
    };
    let mut chunk = [0u8; 2048];
    while let Ok(n @ 1..) = raw!(SYS_getdents64, dir, chunk.as_mut_ptr(), chunk.len()) {
        names(&chunk[..n]).filter_map(number).filter(|fd| *fd != dir).for_each(classify::hold_for_life);
    }
    sys::close(dir);
}

/// The names in a buffer of `struct linux_dirent64`: inode 8, offset 8, record length 2, type 1, name.
fn names(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    const NAME_AT: usize = 19;
    core::iter::from_fn(move || {
        let len = usize::from(u16::from_ne_bytes([*rest.get(16)?, *rest.get(17)?]));
        let (record, after) = rest.split_at_checked(len)?;
        rest = after;
        record.get(NAME_AT..)?.split(|b| *b == 0).next()
    })
}

fn number(name: &[u8]) -> Option<c_int> {
    core::str::from_utf8(name).ok()?.parse().ok()
}
