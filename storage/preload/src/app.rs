//! The application's memory: strings and buffers it hands to a call, as typed values.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use libc::iovec;
use seawall_core::Errno;

use crate::sys::unsafe_call;

/// Addresses below this are never mapped: the kernel answers EFAULT, so we do not touch them.
const FIRST_PAGE: usize = 4096;
/// The kernel writes no more than this in one call.
const MAX_RW_COUNT: usize = 0x7fff_f000;

/// A path argument; `None` for one that the kernel must judge: it cannot be read (EFAULT), or does not end in time
/// (ENAMETOOLONG).
///
/// # Safety
/// As open(2): a string that can be read must stay as it is for the length of the call.
#[inline]
pub unsafe fn path<'a>(path: *const c_char) -> Option<&'a CStr> {
    let start = path as usize;
    let limit = start.checked_add(libc::PATH_MAX as usize)?;
    let mut at = start;
    while at < limit {
        let end = (at / PAGE * PAGE).saturating_add(PAGE).min(limit);
        if !is_readable(at, end - at) {
            return None;
        }
        // SAFETY: readable up to the end of this page, as we have just seen.
        at += unsafe { libc::strnlen(at as *const c_char, end - at) };
        if at < end {
            // SAFETY: all of it is readable, and at `at` stands the only NUL.
            return Some(unsafe {
                CStr::from_bytes_with_nul_unchecked(core::slice::from_raw_parts(path.cast(), at - start + 1))
            });
        }
    }
    None
}

/// What a pointer argument points to; `None` where the kernel will answer EFAULT.
///
/// # Safety
/// Any bits are a `T`.
pub unsafe fn value<T: Copy>(at: *const T) -> Option<T> {
    // SAFETY: readable, as we have just seen, and any bits will do.
    is_readable(at as usize, size_of::<T>()).then(|| unsafe { at.read_unaligned() })
}

/// A buffer argument; `None` for one that the kernel must judge (null, absurd length).
///
/// # Safety
/// As write(2): `len` bytes for the length of the call. Whether they are readable is [`is_readable`]'s to say.
#[inline]
pub unsafe fn bytes<'a>(data: *const c_void, len: usize) -> Option<&'a [u8]> {
    if len == 0 {
        return Some(&[]);
    }
    let sane = data as usize >= FIRST_PAGE && len <= MAX_RW_COUNT;
    // SAFETY: the caller's.
    sane.then(|| unsafe { core::slice::from_raw_parts(data.cast::<u8>(), len) })
}

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
/// As writev(2): `count` elements, each with its bytes, for the length of the call.
pub unsafe fn slices<'a>(iov: *const iovec, count: c_int) -> Option<Slices<'a>> {
    // SAFETY: the caller's.
    unsafe { pieces(iov, count) }.map(|all| Slices { rest: all.iter() })
}

/// The same as the array itself.
///
/// # Safety
/// As for [`slices`].
pub unsafe fn pieces<'a>(iov: *const iovec, count: c_int) -> Option<&'a [iovec]> {
    let count = usize::try_from(count).ok().filter(|n| *n <= libc::UIO_MAXIOV as usize)?;
    if count == 0 {
        return Some(&[]);
    }
    if !is_readable(iov as usize, count * size_of::<iovec>()) {
        return None;
    }
    // SAFETY: the caller's; readable, as we have just seen.
    let all = unsafe { core::slice::from_raw_parts(iov, count) };
    let mut total = 0usize;
    for v in all {
        // SAFETY: as above.
        total = total.checked_add(unsafe { bytes(v.iov_base, v.iov_len) }?.len())?;
    }
    (total <= MAX_RW_COUNT).then_some(all)
}

/// True if these bytes can be read, so that copying them into the log, or looking at a path, will not kill the process
/// where the kernel would have said EFAULT.
///
/// Databases write from the same few pages all the time: pages once seen are believed until the application
/// unmaps or protects something. The others cost a system call each. What libc unmaps inside (a large block that is
/// freed) is not seen: a program that passes such memory has a fault of its own, and may die of it here.
#[inline]
pub fn is_readable(at: usize, len: usize) -> bool {
    if len == 0 {
        return true;
    }
    // Page 0, never mapped, is the mark of an empty cell.
    let Some(last) = at.checked_add(len - 1).filter(|_| at >= FIRST_PAGE) else { return false };
    (at / PAGE..=last / PAGE).all(|page| {
        let cell = &SEEN[page % SEEN.len()];
        cell.load(Relaxed) == page || probe(page, cell)
    })
}

/// True if these bytes can be read and written, so that copying a block into them will not kill the process where
/// pread(2) would have said EFAULT. Believed as long as [`is_readable`].
#[inline]
pub fn is_writable(at: usize, len: usize) -> bool {
    const AT_ONCE: usize = size_of::<u64>();
    let Some(end) = at.checked_add(len).filter(|_| at >= FIRST_PAGE && len >= AT_ONCE) else { return false };
    let epoch = EPOCH.load(Relaxed) % EPOCHS;
    (at / PAGE..=(end - 1) / PAGE).all(|page| {
        let cell = &WRITABLE[page % WRITABLE.len()];
        let believed = page | epoch << PAGE_BITS;
        cell.load(Relaxed) == believed || {
            // Eight bytes of the page, as far as they are the application's.
            let is_so = probe_store((page * PAGE).clamp(at, end - AT_ONCE));
            if is_so {
                cell.store(believed, Relaxed);
            }
            is_so
        }
    })
}

/// Nothing is believed any more: mappings changed.
#[inline]
pub fn forget_pages() {
    if ANY_SEEN.load(Relaxed) {
        forget_all();
    }
    forget_writable();
}

/// Nothing is believed to be writable any more: it is another epoch.
pub fn forget_writable() {
    let next = EPOCH.fetch_add(1, Relaxed).wrapping_add(1);
    if next.is_multiple_of(EPOCHS) {
        WRITABLE.iter().for_each(|cell| cell.store(0, Relaxed));
    }
}

#[cold]
fn forget_all() {
    ANY_SEEN.store(false, Relaxed);
    SEEN.iter().for_each(|cell| cell.store(0, Relaxed));
}

/// Numbers of pages have so many bits, with room to spare for five levels of tables.
const PAGE_BITS: u32 = 46;
const EPOCHS: usize = 1 << (usize::BITS - PAGE_BITS);
/// Counts changes of mappings.
static EPOCH: AtomicUsize = AtomicUsize::new(0);
/// Page numbers with the epoch they are of, each in the cell of its low bits. Databases read into many pages.
static WRITABLE: [AtomicUsize; 1 << 15] = [const { AtomicUsize::new(0) }; 1 << 15];

/// Asks the kernel to store eight bytes there, and puts back what was: sigprocmask stores the signals that are blocked.
#[cold]
fn probe_store(at: usize) -> bool {
    if !is_readable(at, size_of::<u64>()) {
        return false;
    }
    let at = at as *mut u64;
    // SAFETY: readable, as we have just seen, and the application's for the length of its call.
    let before = unsafe { at.read_unaligned() };
    let is_writable = unsafe_call!(SYS_rt_sigprocmask, libc::SIG_BLOCK, 0, at, size_of::<u64>()).is_ok();
    if is_writable {
        // SAFETY: the kernel has just stored there.
        unsafe { at.write_unaligned(before) };
    }
    is_writable
}

const PAGE: usize = 4096;
/// Page numbers, each in the cell of its low bits.
static SEEN: [AtomicUsize; 4096] = [const { AtomicUsize::new(0) }; 4096];
static ANY_SEEN: AtomicBool = AtomicBool::new(false);

/// Asks the kernel: sigprocmask reads a signal set from `page` before it finds that -1 is no way to use it.
#[cold]
fn probe(page: usize, cell: &AtomicUsize) -> bool {
    const KERNEL_SIGSET_BYTES: usize = 8;
    let answer = unsafe_call!(SYS_rt_sigprocmask, -1isize, page * PAGE, 0, KERNEL_SIGSET_BYTES);
    let readable = answer != Err(Errno::FAULT);
    if readable {
        ANY_SEEN.store(true, Relaxed);
        cell.store(page, Relaxed);
    }
    readable
}
