//! fts(3). Libc reads the directories by functions of its own, so what it found is judged on its way to the program: a
//! guard is left out, with what is in it, and the true file beside it has its own name.

use core::ffi::{CStr, c_char, c_int, c_long, c_short, c_ushort, c_void};
use core::mem::offset_of;
use core::ptr;

use libc::{AT_FDCWD, stat};

use super::{entry, real_or};
use crate::guard::{self, Shown};
use crate::real::real;
use crate::{errno, session};

/// A directory, before what is in it, and after it.
const FTS_D: c_ushort = 1;
const FTS_DP: c_ushort = 6;
const FTS_SKIP: c_int = 4;
/// What stands behind the name of the true file.
const SUFFIX_LEN: usize = ".seawall".len();
const PATH_MAX: usize = libc::PATH_MAX as usize;

/// An entry, as `fts.h` has it.
#[repr(C)]
struct FtsEntry {
    cycle: *mut Self,
    parent: *mut Self,
    next: *mut Self,
    number: c_long,
    pointer: *mut c_void,
    /// How to reach it from the working directory: the path, or the name.
    access_path: *mut c_char,
    path: *mut c_char,
    error: c_int,
    link: c_int,
    path_len: c_ushort,
    name_len: c_ushort,
    inode: libc::ino_t,
    device: libc::dev_t,
    links: libc::nlink_t,
    level: c_short,
    info: c_ushort,
    flags: c_ushort,
    instruction: c_ushort,
    status: *mut stat,
    name: [c_char; 1],
}

/// A tree, as far as we look at it.
#[repr(C)]
struct Tree {
    current: *mut FtsEntry,
    children: *mut FtsEntry,
}

entry! {
    fn fts_open | fts64_open (paths: *const *mut c_char, options: c_int, order: *const c_void) -> *mut Tree {
        let led = if session::is_off() { None } else { Led::of(paths) };
        let paths = led.as_ref().map_or(paths, |led| led.0.cast_const());
        real_or!(ptr::null_mut(), c"fts_open",
            fn(paths: *const *mut c_char, options: c_int, order: *const c_void) -> *mut Tree)
    }

    fn fts_read | fts64_read (tree: *mut Tree) -> *mut FtsEntry {
        loop {
            let entry = real_or!(ptr::null_mut(), c"fts_read", fn(tree: *mut Tree) -> *mut FtsEntry);
            if entry.is_null() || session::is_off() || errno::kept(|| is_shown(entry)) {
                return entry;
            }
            skip(tree, entry);
        }
    }

    fn fts_children | fts64_children (tree: *mut Tree, options: c_int) -> *mut FtsEntry {
        let first = real_or!(ptr::null_mut(), c"fts_children", fn(tree: *mut Tree, options: c_int) -> *mut FtsEntry);
        if first.is_null() || session::is_off() {
            return first;
        }
        errno::kept(|| without_guards(tree, first))
    }
}

/// Paths that lead to the true files beside guards, in memory of libc's.
struct Led(*mut *mut c_char);

impl Led {
    /// None if they all mean what they say.
    unsafe fn of(paths: *const *mut c_char) -> Option<Self> {
        // SAFETY: as fts_open(3): paths up to a null.
        unsafe {
            let count = (0..).find(|i| (*paths.add(*i)).is_null())?;
            if (0..count).all(|i| guard::is_clear_of(AT_FDCWD, *paths.add(i))) {
                return None;
            }
            let led = libc::calloc(count + 1, size_of::<*mut c_char>()).cast::<*mut c_char>();
            if led.is_null() {
                return None;
            }
            for i in 0..count {
                led.add(i).write(guard::once(AT_FDCWD, *paths.add(i), |path| libc::strdup(path)));
            }
            Some(Self(led))
        }
    }
}

impl Drop for Led {
    fn drop(&mut self) {
        // SAFETY: made by `of`, which ends them with a null.
        unsafe {
            let mut path = self.0;
            while !(*path).is_null() {
                libc::free((*path).cast());
                path = path.add(1);
            }
            libc::free(self.0.cast());
        }
    }
}

/// True if the program is to be shown `entry`; by its own name, if it is a true file beside a guard.
///
/// # Safety
/// As fts_read(3) returned it.
unsafe fn is_shown(entry: *mut FtsEntry) -> bool {
    // SAFETY: the caller's.
    unsafe {
        if is_named(entry) {
            shorten_path(entry);
            return true;
        }
        match guard::shown(AT_FDCWD, CStr::from_ptr((*entry).access_path)) {
            Shown::Not => false,
            Shown::As(_) if !matches!((*entry).info, FTS_D | FTS_DP) => {
                shorten_name(entry);
                shorten_path(entry);
                true
            }
            _ => true,
        }
    }
}

/// Goes on behind a guard.
unsafe fn skip(tree: *mut Tree, entry: *mut FtsEntry) {
    // SAFETY: the caller's.
    unsafe {
        if (*entry).info == FTS_D
            && let Some(set) = real!(c"fts_set", fn(*mut Tree, *mut FtsEntry, c_int) -> c_int)
        {
            set(tree, entry, FTS_SKIP);
        }
    }
}

fn name(entry: *mut FtsEntry) -> *mut c_char {
    entry.cast::<u8>().wrapping_add(offset_of!(FtsEntry, name)).cast()
}

/// Takes the end off the name of a true file beside a guard. The length stays: it tells [`is_named`].
unsafe fn shorten_name(entry: *mut FtsEntry) {
    // SAFETY: the caller's: the name is as long, and longer than what stands behind it.
    unsafe { name(entry).add(usize::from((*entry).name_len) - SUFFIX_LEN).write(0) };
}

/// True if [`without_guards`] has shortened the name.
unsafe fn is_named(entry: *mut FtsEntry) -> bool {
    // SAFETY: the caller's.
    unsafe { libc::strlen(name(entry)) + SUFFIX_LEN == usize::from((*entry).name_len) }
}

/// And off the path, which ends with that name.
unsafe fn shorten_path(entry: *mut FtsEntry) {
    // SAFETY: the caller's: libc's buffer, which has the whole path.
    unsafe {
        let entry = &mut *entry;
        entry.name_len -= SUFFIX_LEN as c_ushort;
        entry.path_len -= SUFFIX_LEN as c_ushort;
        entry.path.add(usize::from(entry.path_len)).write(0);
    }
}

/// The list of children without guards. Libc goes on with it, so the names of the true files are all that is changed.
unsafe fn without_guards(tree: *mut Tree, first: *mut FtsEntry) -> *mut FtsEntry {
    // SAFETY: libc's list, whose entries it gives free one by one.
    unsafe {
        let mut at: *mut *mut FtsEntry = &raw mut (*tree).children;
        if *at != first {
            // The paths that the tree was opened with.
            return first;
        }
        while !(*at).is_null() {
            let entry = *at;
            match child(entry) {
                Shown::Not => {
                    *at = (*entry).next;
                    libc::free(entry.cast());
                    continue;
                }
                Shown::As(_) => shorten_name(entry),
                Shown::Plain => {}
            }
            at = &raw mut (*entry).next;
        }
        (*tree).children
    }
}

/// How a child is shown whose directory was read last.
unsafe fn child(entry: *mut FtsEntry) -> Shown {
    let mut room = [0; PATH_MAX];
    let mut len = 0;
    // SAFETY: the caller's; the directory is where the working directory reaches it.
    let parts = unsafe {
        [
            CStr::from_ptr((*(*entry).parent).access_path).to_bytes(),
            b"/",
            CStr::from_ptr(name(entry)).to_bytes(),
        ]
    };
    for part in parts {
        let Some(place) = room.get_mut(len..len + part.len()) else { return Shown::Plain };
        place.copy_from_slice(part);
        len += part.len();
    }
    CStr::from_bytes_until_nul(&room).map_or(Shown::Plain, |path| guard::shown(AT_FDCWD, path))
}
