//! Writable shared mappings: stores cannot be seen, so the file stays out of the log while it is mapped.

use core::ffi::{c_int, c_void};

use libc::{MAP_SHARED, MAP_SHARED_VALIDATE, PROT_WRITE};
use seawall_core::Errno;

use super::entry;
use crate::classify::{self, Intent, Kind, Target};
use crate::holds::{self, Why};
use crate::sys::unsafe_call;
use crate::{app, cached, errno};

const MAP_TYPE: c_int = 0x0f;
const MAP_SYNC: c_int = 0x80000;
const MREMAP_DONTUNMAP: c_int = 4;

entry! {
    fn mmap | mmap64 (
        at: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: i64
    ) -> *mut c_void {
        address(map(at, len, prot, flags, fd, offset))
    }
    fn munmap (at: *mut c_void, len: usize) -> c_int { errno::int(unmap(at, len)) }
    fn mprotect (at: *mut c_void, len: usize, prot: c_int) -> c_int { errno::int(protect(at, len, prot)) }
    fn pkey_mprotect (at: *mut c_void, len: usize, prot: c_int, key: c_int) -> c_int {
        prepare(at, len, prot);
        errno::int(unsafe_call!(SYS_pkey_mprotect, at, len, prot, key))
    }
    fn mremap (at: *mut c_void, len: usize, new_len: usize, flags: c_int, to: *mut c_void) -> *mut c_void {
        address(remap(at, len, new_len, flags, to))
    }
}

fn address(result: Result<usize, Errno>) -> *mut c_void {
    // MAP_FAILED is -1, as errno::long returns it.
    errno::long(result) as *mut c_void
}

/// mmap(2).
pub fn map(
    at: *mut c_void,
    len: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> Result<usize, Errno> {
    let call = || unsafe_call!(SYS_mmap, at, len, prot, flags, fd, offset);
    let shared =
        matches!(flags & MAP_TYPE, MAP_SHARED | MAP_SHARED_VALIDATE) && flags & libc::MAP_ANONYMOUS == 0;
    if flags & libc::MAP_FIXED != 0 {
        app::forget_pages();
    }
    if !shared || len == 0 {
        return call();
    }
    // If it is not writable now it may become so.
    cached::unseen(fd);
    match classify::look_up_or_register(fd, Intent::Hold) {
        Kind::Managed(target) if target.writable() => {
            if flags & MAP_SYNC != 0 {
                // As a file system without DAX says: stores that need no fsync are not for a held file.
                return Err(Errno::OPNOTSUPP);
            }
            held(&target, fd, len, prot & PROT_WRITE != 0, call)
        }
        Kind::Nobody if prot & PROT_WRITE != 0 => Err(Errno::IO),
        _ => call(),
    }
}

/// A mapping that is, or may become, writable.
fn held(
    target: &Target,
    fd: c_int,
    len: usize,
    writable: bool,
    call: impl FnOnce() -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    if writable {
        target.hold(fd);
    }
    let at = call().inspect_err(|_| {
        if writable {
            target.engine.release(target.who, target.file);
        }
    })?;
    let why = Why::Mapping { at, len };
    if writable {
        holds::held(why, target.file);
    } else if !holds::latent(why, target.file) {
        target.hold(fd);
    }
    Ok(at)
}

/// munmap(2).
pub fn unmap(at: *mut c_void, len: usize) -> Result<usize, Errno> {
    app::forget_pages();
    let done = unsafe_call!(SYS_munmap, at, len)?;
    if holds::any() {
        holds::unmapped(at as usize, len);
    }
    Ok(done)
}

/// mprotect(2).
pub fn protect(at: *mut c_void, len: usize, prot: c_int) -> Result<usize, Errno> {
    prepare(at, len, prot);
    unsafe_call!(SYS_mprotect, at, len, prot)
}

fn prepare(at: *mut c_void, len: usize, prot: c_int) {
    if prot & libc::PROT_READ == 0 {
        app::forget_pages();
    } else if prot & PROT_WRITE == 0 {
        app::forget_writable();
    }
    if prot & PROT_WRITE != 0 && holds::any() {
        holds::writable(at as usize, len);
    }
}

/// mremap(2).
pub fn remap(
    at: *mut c_void,
    len: usize,
    new_len: usize,
    flags: c_int,
    to: *mut c_void,
) -> Result<usize, Errno> {
    app::forget_pages();
    let new = unsafe_call!(SYS_mremap, at, len, new_len, flags, to)?;
    if holds::any() {
        let stays = len == 0 || flags & MREMAP_DONTUNMAP != 0;
        holds::moved(at as usize, if stays { 0 } else { len }, new, new_len);
    }
    Ok(new)
}
