//! The zone of the block cache: what is known of it, and how it is joined.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::AcqRel, Ordering::Acquire};

use rustix::fd::BorrowedFd;
use seawall_cache::shared::Cache;
use seawall_media::Region;

use super::disk;
use crate::sys::unsafe_call;

/// Null while nobody knows.
static ZONE: AtomicPtr<Cache> = AtomicPtr::new(ptr::null_mut());
/// There is none, and never will be in this process.
const NONE: *mut Cache = ptr::without_provenance_mut(align_of::<Cache>());

/// What is known of the zone.
pub enum Known {
    /// There is none, for certain.
    No,
    /// Nothing: the log was not joined.
    NotYet,
    /// It is there.
    Yes(&'static Cache),
}

/// What is known.
#[inline]
pub fn known() -> Known {
    match ZONE.load(Acquire) {
        NONE => Known::No,
        // SAFETY: a published cache is never moved or freed.
        at => unsafe { at.as_ref() }.map_or(Known::NotYet, Known::Yes),
    }
}

/// False if there is no cache, for certain.
#[inline]
pub fn may_be() -> bool {
    !matches!(known(), Known::No)
}

/// There is no cache: in what came with the answer to Hello, or because there will be no answer.
pub fn none() {
    let _ = ZONE.compare_exchange(ptr::null_mut(), NONE, AcqRel, Acquire);
}

/// Joins the zone behind `fd`, before anybody can know that this process has joined the log: from then on its writes are
/// believed to be announced. False if that cannot be done.
pub fn join(fd: BorrowedFd<'_>, len: u64) -> bool {
    if matches!(known(), Known::Yes(_)) {
        return true;
    }
    let Some(cache) = Region::map(fd, len, false).ok().and_then(|region| Cache::join(region).ok()) else {
        return false;
    };
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let size = size_of::<Cache>();
    let Ok(at) = unsafe_call!(SYS_mmap, 0, size, prot, flags, -1isize, 0) else { return false };
    let at = at as *mut Cache;
    // SAFETY: fresh memory of the right size, aligned to a page, ours alone until published.
    unsafe { at.write(cache.reading(disk::read)) };
    if ZONE.compare_exchange(ptr::null_mut(), at, AcqRel, Acquire).is_err() {
        // SAFETY: written above and not published.
        unsafe { at.drop_in_place() };
        let _ = unsafe_call!(SYS_munmap, at, size);
    }
    true
}
