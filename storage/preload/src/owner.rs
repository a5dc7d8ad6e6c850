//! The caller: this process's client slot, and the thread pointer. No TLS, no getpid on the hot path.
//!
//! Both live in a page that the kernel wipes at fork (MADV_WIPEONFORK), so a child that was made by any kind
//! of fork finds zeros and claims a slot of its own. A vfork child shares the page with its parent: the
//! page is intact, and the raw process id is another one.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

use seawall_core::{Engine, Owner};

use crate::sys::{self, unsafe_call};

/// What is known about this process. All zero in a fresh page, and again after a fork.
struct Process {
    pid: AtomicU32,
    /// Client slot plus one.
    client: AtomicU32,
}

static PAGE: AtomicPtr<Process> = AtomicPtr::new(ptr::null_mut());
const PAGE_BYTES: usize = 4096;

/// The calling thread, or `None` while no client slot is free.
#[inline]
pub fn current(engine: &Engine) -> Option<Owner> {
    let process = process()?;
    let client = match process.client.load(Acquire) {
        0 => claim(engine, process)?,
        known => known - 1,
    };
    Some(Owner::new(client, sys::thread_pointer()))
}

/// Remembers the process id: in our constructor, and in the child after a fork.
pub fn remember_pid() {
    if let Some(process) = process()
        && process.pid.load(Relaxed) == 0
    {
        process.pid.store(sys::getpid(), Relaxed);
    }
}

/// Forgets the parent's identity in a child, in case the kernel did not (MADV_WIPEONFORK is Linux 4.14).
pub fn forked() {
    if let Some(process) = process() {
        process.pid.store(sys::getpid(), Relaxed);
        process.client.store(0, Relaxed);
    }
}

/// True in a child of vfork(2): its memory is its parent's, its descriptors are not.
pub fn in_vfork_child() -> bool {
    // SAFETY: a page, once published, stays mapped.
    let known = unsafe { PAGE.load(Acquire).as_ref() }.map_or(0, |p| p.pid.load(Relaxed));
    known != 0 && known != sys::getpid()
}

#[inline]
fn process() -> Option<&'static Process> {
    // SAFETY: a page, once published, stays mapped.
    unsafe { PAGE.load(Acquire).as_ref() }.or_else(make_page)
}

#[cold]
fn make_page() -> Option<&'static Process> {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let at = unsafe_call!(SYS_mmap, 0, PAGE_BYTES, prot, flags, -1isize, 0).ok()?;
    let _ = unsafe_call!(SYS_madvise, at, PAGE_BYTES, libc::MADV_WIPEONFORK);
    let fresh = at as *mut Process;
    let page = match PAGE.compare_exchange(ptr::null_mut(), fresh, AcqRel, Acquire) {
        Ok(_) => fresh,
        Err(winner) => {
            let _ = unsafe_call!(SYS_munmap, at, PAGE_BYTES);
            winner
        }
    };
    // SAFETY: a whole zeroed page, which is a valid `Process`; it is never unmapped once published.
    unsafe { page.as_ref() }
}

/// Claims a slot under the remembered process id: a vfork child must not claim one in its own name for the
/// memory of its parent.
#[cold]
fn claim(engine: &Engine, process: &Process) -> Option<u32> {
    remember_pid();
    let slot = engine.claim_client(process.pid.load(Relaxed), sys::now_ns(libc::CLOCK_BOOTTIME))?;
    match process.client.compare_exchange(0, slot + 1, AcqRel, Acquire) {
        Ok(_) => Some(slot),
        Err(winner) => {
            engine.release_client(slot);
            Some(winner - 1)
        }
    }
}
