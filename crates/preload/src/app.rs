//! The application's memory: strings and buffers it hands to a call, as typed values.

use core::ffi::{CStr, c_char, c_int, c_void};

use libc::iovec;

/// Addresses below this are never mapped: the kernel answers EFAULT, so we do not touch them.
const FIRST_PAGE: usize = 4096;

/// A path argument; `None` for a null pointer (the kernel answers EFAULT).
///
/// # Safety
/// A pointer that is not null must name a C string that lives for the call.
pub unsafe fn path<'a>(path: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller's.
    (path as usize >= FIRST_PAGE).then(|| unsafe { CStr::from_ptr(path) })
}

/// A buffer argument; `None` for one that the kernel must judge (null, absurd length).
///
/// # Safety
/// As write(2): `len` readable bytes for the length of the call.
#[inline]
pub unsafe fn bytes<'a>(data: *const c_void, len: usize) -> Option<&'a [u8]> {
    if len == 0 {
        return Some(&[]);
    }
    let sane = data as usize >= FIRST_PAGE && len <= MAX_RW_COUNT;
    // SAFETY: the caller's.
    sane.then(|| unsafe { core::slice::from_raw_parts(data.cast::<u8>(), len) })
}

/// The kernel writes no more than this in one call.
const MAX_RW_COUNT: usize = 0x7fff_f000;

/// The slices of an iovec array.
#[derive(Clone)]
pub struct Slices<'a> {
    rest: core::slice::Iter<'a, iovec>,
}

impl<'a> Iterator for Slices<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let v = self.rest.next()?;
        // SAFETY: `slices` checked every element; the application keeps them for the length of its call.
        Some(unsafe { bytes(v.iov_base, v.iov_len) }.unwrap_or(&[]))
    }
}

/// An iovec argument; `None` for one that the kernel must judge.
///
/// # Safety
/// As writev(2): `count` readable elements, each with its bytes, for the length of the call.
pub unsafe fn slices<'a>(iov: *const iovec, count: c_int) -> Option<Slices<'a>> {
    let count = usize::try_from(count).ok().filter(|n| *n <= libc::UIO_MAXIOV as usize)?;
    if count == 0 {
        return Some(Slices { rest: [].iter() });
    }
    if (iov as usize) < FIRST_PAGE {
        return None;
    }
    // SAFETY: the caller's.
    let all = unsafe { core::slice::from_raw_parts(iov, count) };
    let mut total = 0usize;
    for v in all {
        // SAFETY: as above.
        total = total.checked_add(unsafe { bytes(v.iov_base, v.iov_len) }?.len())?;
    }
    (total <= MAX_RW_COUNT).then(|| Slices { rest: all.iter() })
}
