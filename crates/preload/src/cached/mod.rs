//! The block cache, as this process uses it: [`mod@read`] looks there first, and whatever may change a file says so
//! ([`mod@change`]). `docs/CACHE.md` says what it must do and why; what all fronts do is `seawall_cache::front`, the zone
//! itself `seawall_cache::shared`.
//!
//! | a file | is written |
//! |---|---|
//! | not entered, as far as the descriptor remembers ([`table`]) | counted in its cell meanwhile |
//! | entered | announced |
//! | written unseen (a mapping, a ring, a stream) | its cell pinned, and the file distrusted |
//!
//! A process without a cache pays one load. Nothing here allocates, waits or keeps a lock; the daemon is asked only by
//! who reads, once a descriptor.

mod change;
mod disk;
mod read;
mod streams;
mod table;

use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::AcqRel, Ordering::Acquire};

use rustix::fd::BorrowedFd;
use seawall_cache::front::word::Word;
use seawall_cache::shared::{Cache, Owner};
use seawall_media::Region;

use crate::sys::{self, raw};
use crate::{owner, session};

pub use change::{
    Span, append_or_unknown, change, change_named, change_opened, pin_open, sync, unseen, write,
};
pub use disk::KEPT;
pub use read::{Wanted, read};
pub use streams::{before_fork, closed, is_open as is_stream, opened as stream};
pub use table::{copy, reset};

/// Null while nobody knows.
static ZONE: AtomicPtr<Cache> = AtomicPtr::new(ptr::null_mut());
/// There is none, and never will be in this process.
const NONE: *mut Cache = ptr::without_provenance_mut(align_of::<Cache>());

/// What is known of the zone.
enum Known {
    No,
    NotYet,
    Yes(&'static Cache),
}

#[inline]
fn known() -> Known {
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
    let Ok(at) = raw!(SYS_mmap, 0, size, prot, flags, -1isize, 0) else { return false };
    let at = at as *mut Cache;
    // SAFETY: fresh memory of the right size, aligned to a page, ours alone until published.
    unsafe { at.write(cache.reading(disk::read)) };
    if ZONE.compare_exchange(ptr::null_mut(), at, AcqRel, Acquire).is_err() {
        // SAFETY: written above and not published.
        unsafe { at.drop_in_place() };
        let _ = raw!(SYS_munmap, at, size);
    }
    true
}

/// The zone, for a use of `fd` that matters to it; joins the log if that has not been tried, and `fd` is a regular file.
#[inline]
fn zone_for(fd: c_int) -> Option<&'static Cache> {
    match known() {
        Known::No => None,
        Known::Yes(cache) => Some(cache),
        Known::NotYet => ask_for(fd),
    }
}

#[cold]
fn ask_for(fd: c_int) -> Option<&'static Cache> {
    if session::is_off() || table::get(fd).is_other() {
        return None;
    }
    if !sys::fstat(fd).is_ok_and(|stat| stat.regular) {
        table::set(fd, Word::OTHER);
        return None;
    }
    zone()
}

/// True if nothing that is done through `fd` can matter to the zone.
#[inline]
pub fn is_other(fd: c_int) -> bool {
    zone_for(fd).is_none_or(|cache| table::known(cache, fd).is_other())
}

/// True if no read through `fd` goes by the zone, as far as is known without asking.
#[inline]
pub fn is_read_past(fd: c_int) -> bool {
    session::is_off() || !may_be() || table::get(fd).is_other()
}

/// The zone, for a use of a path.
fn zone() -> Option<&'static Cache> {
    if matches!(known(), Known::NotYet) {
        session::engine()?;
    }
    match known() {
        Known::Yes(cache) => Some(cache),
        Known::No | Known::NotYet => None,
    }
}

/// Who is calling, for the zone: by this the daemon tells whether it lives.
#[inline]
fn who() -> Option<Owner> {
    let engine = session::joined()?;
    let client = owner::current(engine)?.client();
    let generation = engine.shm().client(client)?.generation().load(Acquire);
    Some(Owner::of_client(client, generation, (sys::thread_pointer() >> 6) as u32))
}
