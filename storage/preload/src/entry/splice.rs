//! sendfile, copy_file_range, splice into a managed file: it leaves the log first.

use core::ffi::{c_int, c_uint};

use super::{entry, point};
use crate::classify::{is_left_alone, pass};
use crate::errno;
use crate::sys::unsafe_call;

entry! {
    fn sendfile | sendfile64 (out: c_int, input: c_int, offset: *mut i64, count: usize) -> isize,
        passes if { is_left_alone(out) }
    {
        errno::long(pass(out, || unsafe_call!(SYS_sendfile, out, input, offset, count)))
    }
}

point! {
    fn copy_file_range (
        input: c_int, from: *mut i64, out: c_int, to: *mut i64, len: usize, flags: c_uint
    ) -> isize, passes if { is_left_alone(out) } {
        errno::long(pass(out, || unsafe_call!(SYS_copy_file_range, input, from, out, to, len, flags)))
    }
    fn splice (
        input: c_int, from: *mut i64, out: c_int, to: *mut i64, len: usize, flags: c_uint
    ) -> isize, passes if { is_left_alone(out) } {
        errno::long(pass(out, || unsafe_call!(SYS_splice, input, from, out, to, len, flags)))
    }
}
