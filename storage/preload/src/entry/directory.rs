//! Directories: listed without guards, and removed although one is left in them that guards nothing any more.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;

use libc::{AT_FDCWD, DIR, dirent64};
use seawall_core::Errno;

use super::{entry, names, real_or};
use crate::client::DAEMON;
use crate::guard::{self, Shown};
use crate::real::real;
use crate::sys::entries::{self, NAME};
use crate::sys::{self, unsafe_call};
use crate::{app, errno, session};

const AT_REMOVEDIR: c_int = 0x200;

/// The program's function that says which entries it wants, or null; and the one that compares two of them.
type Filter = *const c_void;
type Order = *const c_void;

entry! {
    fn readdir | readdir64 (stream: *mut DIR) -> *mut dirent64 { next(stream) }

    fn readdir_r | readdir64_r (stream: *mut DIR, entry: *mut dirent64, result: *mut *mut dirent64) -> c_int {
        loop {
            let done = real_or!(libc::ENOSYS, c"readdir64_r",
                fn(stream: *mut DIR, entry: *mut dirent64, result: *mut *mut dirent64) -> c_int);
            if done != 0 || (*result).is_null() || is_shown(descriptor(stream), *result) {
                return done;
            }
        }
    }

    fn getdents64 (fd: c_int, buffer: *mut c_void, len: usize) -> isize {
        errno::long(read(fd, buffer.cast(), len))
    }

    fn scandir | scandir64 (
        path: *const c_char, list: *mut *mut *mut dirent64, filter: Filter, order: Order
    ) -> c_int {
        scanned(AT_FDCWD, path, list, filter, order)
    }
    fn scandirat | scandirat64 (
        dir: c_int, path: *const c_char, list: *mut *mut *mut dirent64, filter: Filter, order: Order
    ) -> c_int {
        scanned(dir, path, list, filter, order)
    }

    fn rmdir (path: *const c_char) -> c_int { errno::int(names::removed(AT_FDCWD, path, AT_REMOVEDIR)) }
}

/// readdir(3).
///
/// # Safety
/// As readdir(3).
pub unsafe fn next(stream: *mut DIR) -> *mut dirent64 {
    loop {
        // SAFETY: the caller's.
        let entry = unsafe { real_or!(ptr::null_mut(), c"readdir64", fn(stream: *mut DIR) -> *mut dirent64) };
        // SAFETY: the caller's; the entry is libc's until the next call.
        if entry.is_null() || unsafe { is_shown(descriptor(stream), entry) } {
            return entry;
        }
    }
}

/// The stream's descriptor, or none.
///
/// # Safety
/// An open stream.
unsafe fn descriptor(stream: *mut DIR) -> c_int {
    // SAFETY: the caller's.
    real!(c"dirfd", fn(*mut DIR) -> c_int).map_or(-1, |dirfd| unsafe { dirfd(stream) })
}

/// True if the entry is to be shown; by another name, if need be.
///
/// # Safety
/// An entry of that directory.
unsafe fn is_shown(dir: c_int, entry: *mut dirent64) -> bool {
    // SAFETY: the caller's; names end in NUL. A shorter name ends where the longer one went on.
    unsafe {
        let name = (&raw mut (*entry).d_name).cast::<c_char>();
        match errno::kept(|| guard::shown(dir, CStr::from_ptr(name))) {
            Shown::Plain => true,
            Shown::Not => false,
            Shown::As(len) => {
                name.add(len).write(0);
                true
            }
        }
    }
}

/// getdents64(2).
///
/// # Safety
/// As the system call.
pub unsafe fn read(fd: c_int, buffer: *mut u8, len: usize) -> Result<usize, Errno> {
    loop {
        let filled = unsafe_call!(SYS_getdents64, fd, buffer, len)?;
        if filled == 0 || session::is_off() {
            return Ok(filled);
        }
        // SAFETY: the kernel filled so many bytes with whole entries.
        let kept = unsafe { keep_shown(fd, core::slice::from_raw_parts_mut(buffer, filled)) };
        // None at all would be the end.
        if kept > 0 {
            return Ok(kept);
        }
    }
}

/// Closes the gaps of entries that are not shown. Returns the bytes that are left.
fn keep_shown(dir: c_int, all: &mut [u8]) -> usize {
    let (mut from, mut to) = (0, 0);
    while let Some(len) = entries::length_at(all, from) {
        let end = from + len;
        let shown = guard::shown(dir, entries::name_in(&all[from..end]));
        if let Shown::As(shorter) = shown {
            all[from + NAME + shorter] = 0;
        }
        if shown != Shown::Not {
            all.copy_within(from..end, to);
            to += len;
        }
        from = end;
    }
    to
}

/// scandirat(3). Libc reads the directory by functions of its own: what that found is right unless there is a guard in it.
///
/// # Safety
/// As scandirat(3).
unsafe fn scanned(
    dir: c_int,
    path: *const c_char,
    list: *mut *mut *mut dirent64,
    filter: Filter,
    order: Order,
) -> c_int {
    let guarded = || {
        // SAFETY: the caller's.
        let path = unsafe { app::path(path) }?;
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let fd = sys::openat(dir, path, flags, 0).ok()?;
        let is_guarded = look(fd, |_, shown| shown != Shown::Plain);
        if is_guarded && unsafe_call!(SYS_lseek, fd, 0, libc::SEEK_SET).is_ok() {
            return Some(fd);
        }
        sys::close(fd);
        None
    };
    let guarded = if session::is_off() { None } else { errno::kept(guarded) };
    // SAFETY: the caller's.
    unsafe {
        match guarded {
            Some(fd) => scan(fd, list, filter, order),
            None => real_or!(
                -1,
                c"scandirat64",
                fn(
                    dir: c_int,
                    path: *const c_char,
                    list: *mut *mut *mut dirent64,
                    filter: Filter,
                    order: Order,
                ) -> c_int
            ),
        }
    }
}

/// True if one entry of the directory `fd`, by its name and how it is shown, is so.
fn look(fd: c_int, is: impl Fn(&CStr, Shown) -> bool) -> bool {
    entries::any_entry(fd, |name| name != c"." && name != c".." && is(name, guard::shown(fd, name)))
}

/// scandirat(3) of the directory `fd`, which it closes, by the entries that are shown.
unsafe fn scan(fd: c_int, list: *mut *mut *mut dirent64, filter: Filter, order: Order) -> c_int {
    // SAFETY: a descriptor of our own, which the stream closes; libc's own memory, as scandir's callers free it. The
    // functions have the types that scandir's have; no function is null.
    unsafe {
        let filter: Option<unsafe extern "C" fn(*const dirent64) -> c_int> = core::mem::transmute(filter);
        let order: Option<unsafe extern "C" fn(*const c_void, *const c_void) -> c_int> =
            core::mem::transmute(order);
        let Some(stream) = real!(c"fdopendir", fn(c_int) -> *mut DIR).map(|open| open(fd)) else { return -1 };
        let (mut all, mut count): (*mut *mut dirent64, usize) = (ptr::null_mut(), 0);
        loop {
            let entry = next(stream);
            if entry.is_null() {
                break;
            }
            if filter.is_some_and(|filter| filter(entry) == 0) {
                continue;
            }
            let len = usize::from((*entry).d_reclen);
            let copy = libc::malloc(len).cast::<u8>();
            let grown = libc::realloc(all.cast(), (count + 1) * size_of::<*mut dirent64>());
            if copy.is_null() || grown.is_null() {
                errno::set(Errno::NOMEM);
                return -1;
            }
            ptr::copy_nonoverlapping(entry.cast::<u8>(), copy, len);
            all = grown.cast();
            all.add(count).write(copy.cast());
            count += 1;
        }
        real!(c"closedir", fn(*mut DIR) -> c_int).map(|close| close(stream));
        if order.is_some() && count > 1 {
            libc::qsort(all.cast(), count, size_of::<*mut dirent64>(), order);
        }
        list.write(all);
        c_int::try_from(count).unwrap_or(c_int::MAX)
    }
}

/// A directory could not be removed, or replaced, because something is in it: if that is nothing but guards of what is
/// gone, the daemon lowers them. True if it is worth another try.
#[cold]
pub fn make_way(dir: c_int, path: &CStr) -> bool {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    if session::is_off() {
        return false;
    }
    let Ok(fd) = sys::openat(dir, path, flags, 0) else { return false };
    // The daemon may have lowered one since it was listed.
    let is_in_the_way = |name: &CStr, shown| shown != Shown::Not && sys::exists(fd, name);
    let lowered = !look(fd, is_in_the_way) && DAEMON.lower_left(sys::borrow(fd));
    sys::close(fd);
    lowered
}
