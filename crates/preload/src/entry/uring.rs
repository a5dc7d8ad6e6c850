//! liburing makes its own system calls inside, but it must be asked to set a ring up: see [`crate::rings`].

use core::ffi::{c_int, c_uint, c_void};

use seawall_core::Errno;

use super::entry;
use super::origin::made;
use crate::real::real;
use crate::rings;
use crate::sys::raw;

entry! {
    fn io_uring_setup (entries: c_uint, params: *mut c_void) -> c_int {
        // liburing's: the error number, negative.
        setup(entries, params).map_or_else(|e| -e.raw_os_error(), |fd| fd as c_int)
    }
    fn io_uring_queue_init (entries: c_uint, ring: *mut c_void, flags: c_uint) -> c_int {
        rings::announce();
        match real!(c"io_uring_queue_init", fn(c_uint, *mut c_void, c_uint) -> c_int) {
            Some(real) => real(entries, ring, flags),
            None => -libc::ENOSYS,
        }
    }
    fn io_uring_queue_init_params (entries: c_uint, ring: *mut c_void, params: *mut c_void) -> c_int {
        rings::announce();
        match real!(c"io_uring_queue_init_params", fn(c_uint, *mut c_void, *mut c_void) -> c_int) {
            Some(real) => real(entries, ring, params),
            None => -libc::ENOSYS,
        }
    }
    fn io_uring_queue_init_mem (
        entries: c_uint, ring: *mut c_void, params: *mut c_void, memory: *mut c_void, size: usize
    ) -> c_int {
        rings::announce();
        match real!(c"io_uring_queue_init_mem", fn(c_uint, *mut c_void, *mut c_void, *mut c_void, usize) -> c_int) {
            Some(real) => real(entries, ring, params, memory, size),
            None => -libc::ENOSYS,
        }
    }
}

/// io_uring_setup(2).
pub fn setup(entries: c_uint, params: *mut c_void) -> Result<usize, Errno> {
    rings::announce();
    made(raw!(SYS_io_uring_setup, entries, params))
}
