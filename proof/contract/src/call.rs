//! Calling libc the way a database does, and remembering what it answered.
//!
//! `call!` sets errno to a sentinel, makes one libc call and records its result with the errno it
//! left; a successful call that touched errno is recorded too, because errno must be preserved.

use std::ffi::{CStr, c_int, c_void};

/// A value no call ever leaves in errno.
pub const SENTINEL: c_int = 12_345;

/// How a call's result is written into a trace.
#[derive(Clone, Copy)]
pub enum Kind {
    /// The number itself.
    Number,
    /// `fd`: descriptor numbers are not part of most contracts.
    Descriptor,
    /// `address`: a mapping or a stream.
    Address,
    /// The result *is* the error number (posix_fallocate, pthread_*).
    ErrorNumber,
}

/// Sets errno.
pub fn set_errno(value: c_int) {
    // SAFETY: __errno_location returns this thread's errno, always valid.
    unsafe { *libc::__errno_location() = value }
}

/// Reads errno.
pub fn errno() -> c_int {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() }
}

/// The address of a libc symbol as the dynamic linker resolves it for a program: the shim's first.
pub fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: dlsym only reads the NUL-terminated name.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// One libc call of the `libc` crate: `call!(cx, pwrite(fd, address, length, offset))`.
/// An optional kind before the call says how its result is traced.
macro_rules! call {
    ($cx:expr, $name:ident ( $($argument:expr),* $(,)? )) => {
        call!($cx, Number, $name($($argument),*))
    };
    ($cx:expr, $kind:ident, $name:ident ( $($argument:expr),* $(,)? )) => {{
        $crate::call::set_errno($crate::call::SENTINEL);
        // SAFETY: cases pass descriptors, C strings and buffers that outlive the call; where a bad
        // pointer is the point of the case, the kernel (or the shim) must answer EFAULT.
        let result = unsafe { libc::$name($($argument),*) } as i64;
        $cx.outcome(stringify!($name), result, $crate::call::errno(), $crate::call::Kind::$kind)
    }};
}

/// One call of a symbol found by name, because the `libc` crate does not declare it:
/// `call_named!(cx, Descriptor, "__open_2", fn(*const c_char, c_int) -> c_int, (path, flags))`.
macro_rules! call_named {
    ($cx:expr, $kind:ident, $name:literal, fn($($ty:ty),*) -> $ret:ty, ($($argument:expr),* $(,)?)) => {{
        let name = std::ffi::CString::new($name).expect("a symbol name holds no NUL");
        match $crate::call::symbol(&name) {
            None => {
                $cx.note(concat!($name, ": no such symbol"));
                -1
            }
            Some(address) => {
                type Function = unsafe extern "C" fn($($ty),*) -> $ret;
                // SAFETY: the signature beside the name is glibc's own.
                let function = unsafe { std::mem::transmute::<*mut libc::c_void, Function>(address) };
                $crate::call::set_errno($crate::call::SENTINEL);
                // SAFETY: as for `call!`.
                let result = unsafe { function($($argument),*) } as i64;
                $cx.outcome($name, result, $crate::call::errno(), $crate::call::Kind::$kind)
            }
        }
    }};
}
