//! liburing makes its own system calls inside, but it must be asked to set an io_uring up and to submit: see
//! [`crate::io_uring`].

use core::ffi::{c_int, c_uint, c_void};

use seawall_core::Errno;

use super::entry;
use super::origin::made;
use crate::app;
use crate::io_uring::{self, IoUring};
use crate::real::real;
use crate::sys::{self, unsafe_call};

/// Where `flags` stands in the kernel's `struct io_uring_params`, in words.
const FLAGS: usize = 2;
/// `sizeof` the kernel's signal set, as liburing passes it.
const SIGSET_BYTES: usize = 8;

/// liburing's own function: its negative error number if there is none.
macro_rules! liburing {
    ($name:expr, fn($($arg:ident: $kind:ty),* $(,)?)) => {
        match real!($name, fn($($kind),*) -> c_int) {
            Some(real) => real($($arg),*),
            None => -libc::ENOSYS,
        }
    };
}

entry! {
    fn io_uring_setup (entries: c_uint, params: *mut c_void) -> c_int {
        negative(setup(entries, params))
    }
    fn io_uring_queue_init (entries: c_uint, ring: *mut IoUring, flags: c_uint) -> c_int {
        set_up(flags, ring, || liburing!(c"io_uring_queue_init", fn(entries: c_uint, ring: *mut IoUring, flags: c_uint)))
    }
    fn io_uring_queue_init_params (entries: c_uint, ring: *mut IoUring, params: *mut c_uint) -> c_int {
        set_up(flags_of(params), ring, || {
            liburing!(c"io_uring_queue_init_params", fn(entries: c_uint, ring: *mut IoUring, params: *mut c_uint))
        })
    }
    fn io_uring_queue_init_mem (
        entries: c_uint, ring: *mut IoUring, params: *mut c_uint, memory: *mut c_void, size: usize
    ) -> c_int {
        if io_uring::are_refused() {
            return -libc::ENOSYS;
        }
        io_uring::hide();
        liburing!(c"io_uring_queue_init_mem",
            fn(entries: c_uint, ring: *mut IoUring, params: *mut c_uint, memory: *mut c_void, size: usize))
    }
    /// liburing's own set-up comes by here as well.
    fn io_uring_queue_mmap (fd: c_int, params: *mut c_uint, ring: *mut IoUring) -> c_int {
        set_up(flags_of(params), ring, || {
            liburing!(c"io_uring_queue_mmap", fn(fd: c_int, params: *mut c_uint, ring: *mut IoUring))
        })
    }
}

entry! {
    fn io_uring_submit (ring: *mut IoUring) -> c_int {
        io_uring::submitting(ring);
        liburing!(c"io_uring_submit", fn(ring: *mut IoUring))
    }
    fn io_uring_submit_and_wait (ring: *mut IoUring, n: c_uint) -> c_int {
        io_uring::submitting(ring);
        liburing!(c"io_uring_submit_and_wait", fn(ring: *mut IoUring, n: c_uint))
    }
    fn io_uring_submit_and_get_events (ring: *mut IoUring) -> c_int {
        io_uring::submitting(ring);
        liburing!(c"io_uring_submit_and_get_events", fn(ring: *mut IoUring))
    }
    fn io_uring_submit_and_wait_timeout (
        ring: *mut IoUring, done: *mut *mut c_void, n: c_uint, limit: *mut c_void, signals: *mut c_void
    ) -> c_int {
        io_uring::submitting(ring);
        liburing!(c"io_uring_submit_and_wait_timeout",
            fn(ring: *mut IoUring, done: *mut *mut c_void, n: c_uint, limit: *mut c_void, signals: *mut c_void))
    }
    fn io_uring_submit_and_wait_min_timeout (
        ring: *mut IoUring, done: *mut *mut c_void, n: c_uint, limit: *mut c_void, least: c_uint, signals: *mut c_void
    ) -> c_int {
        io_uring::submitting(ring);
        liburing!(c"io_uring_submit_and_wait_min_timeout", fn(
            ring: *mut IoUring, done: *mut *mut c_void, n: c_uint, limit: *mut c_void, least: c_uint, signals: *mut c_void
        ))
    }
    fn io_uring_submit_and_wait_reg (
        ring: *mut IoUring, done: *mut *mut c_void, n: c_uint, index: c_int
    ) -> c_int {
        io_uring::submitting(ring);
        liburing!(c"io_uring_submit_and_wait_reg",
            fn(ring: *mut IoUring, done: *mut *mut c_void, n: c_uint, index: c_int))
    }
    /// Waits with a limit submit too, on kernels that know no such limit.
    fn io_uring_wait_cqes (
        ring: *mut IoUring, done: *mut *mut c_void, n: c_uint, limit: *mut c_void, signals: *mut c_void
    ) -> c_int {
        io_uring::submitting(ring);
        liburing!(c"io_uring_wait_cqes",
            fn(ring: *mut IoUring, done: *mut *mut c_void, n: c_uint, limit: *mut c_void, signals: *mut c_void))
    }
    fn io_uring_wait_cqes_min_timeout (
        ring: *mut IoUring, done: *mut *mut c_void, n: c_uint, limit: *mut c_void, least: c_uint, signals: *mut c_void
    ) -> c_int {
        io_uring::submitting(ring);
        liburing!(c"io_uring_wait_cqes_min_timeout", fn(
            ring: *mut IoUring, done: *mut *mut c_void, n: c_uint, limit: *mut c_void, least: c_uint, signals: *mut c_void
        ))
    }
    fn io_uring_wait_cqe_timeout (ring: *mut IoUring, done: *mut *mut c_void, limit: *mut c_void) -> c_int {
        io_uring::submitting(ring);
        liburing!(c"io_uring_wait_cqe_timeout", fn(ring: *mut IoUring, done: *mut *mut c_void, limit: *mut c_void))
    }
    fn io_uring_enter (fd: c_uint, n: c_uint, least: c_uint, flags: c_uint, signals: *mut c_void) -> c_int {
        negative(enter([fd as usize, n as usize, least as usize, flags as usize, signals as usize, SIGSET_BYTES]))
    }
    fn io_uring_enter2 (
        fd: c_uint, n: c_uint, least: c_uint, flags: c_uint, argument: *mut c_void, size: usize
    ) -> c_int {
        negative(enter([fd as usize, n as usize, least as usize, flags as usize, argument as usize, size]))
    }
}

/// liburing's way to say it: the error number, negative.
fn negative(done: Result<usize, Errno>) -> c_int {
    done.map_or_else(|e| -e.raw_os_error(), |n| n as c_int)
}

/// The flags that an io_uring is to be set up with; without any that can be read the kernel refuses (EFAULT).
fn flags_of(params: *const c_uint) -> c_uint {
    // SAFETY: any bits are a number.
    unsafe { app::value(params.wrapping_add(FLAGS)) }.unwrap_or(0)
}

/// An io_uring in liburing's hands: its submissions come through the functions above.
unsafe fn set_up(flags: c_uint, ring: *const IoUring, call: impl FnOnce() -> c_int) -> c_int {
    if io_uring::are_refused() {
        return -libc::ENOSYS;
    }
    if !io_uring::can_be_seen(flags) {
        io_uring::hide();
    }
    let done = call();
    if done == 0 {
        // SAFETY: set up just now.
        unsafe { io_uring::made(ring) };
    }
    done
}

/// io_uring_setup(2): nobody will tell what is submitted.
///
/// # Safety
/// As the call: the kernel writes `params`.
pub unsafe fn setup(entries: c_uint, params: *mut c_void) -> Result<usize, Errno> {
    if io_uring::are_refused() {
        return Err(Errno::NOSYS);
    }
    io_uring::hide();
    made(unsafe_call!(SYS_io_uring_setup, entries, params))
}

/// io_uring_enter(2): as for [`setup`].
///
/// # Safety
/// As the call: the kernel reads what the arguments and the io_uring's entries name, and writes there.
pub unsafe fn enter(args: [usize; 6]) -> Result<usize, Errno> {
    if args[1] > 0 {
        io_uring::hide();
    }
    // SAFETY: the caller's.
    unsafe { sys::call(libc::SYS_io_uring_enter, args) }
}
