//! rename, link, unlink, rmdir: the next fsync of a renamed file makes its name durable, that of one with another link is
//! real; one that loses its last name leaves the log first. A symbolic link may lead a database to more of its data.

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_uint};

use libc::{AT_FDCWD, AT_SYMLINK_NOFOLLOW, dev_t, mode_t};
use seawall_core::naming::How;
use seawall_core::{Errno, policy, stand_in};

use super::{directory, entry};
use crate::client::DAEMON;
use crate::guard::Led;
use crate::look::{self, Seen};
use crate::sys::{self, unsafe_call};
use crate::{app, cached, errno, fdtable, guard, named, session};

const RENAME_NOREPLACE: c_uint = 1;
const RENAME_EXCHANGE: c_uint = 2;
const AT_REMOVEDIR: c_int = 0x200;

entry! {
    fn rename (old: *const c_char, new: *const c_char) -> c_int {
        errno::int(moved(AT_FDCWD, old, AT_FDCWD, new, 0))
    }
    fn renameat (old_dir: c_int, old: *const c_char, new_dir: c_int, new: *const c_char) -> c_int {
        errno::int(moved(old_dir, old, new_dir, new, 0))
    }
    fn renameat2 (old_dir: c_int, old: *const c_char, new_dir: c_int, new: *const c_char, flags: c_uint) -> c_int {
        errno::int(moved(old_dir, old, new_dir, new, flags))
    }
    fn link (old: *const c_char, new: *const c_char) -> c_int {
        errno::int(linked(AT_FDCWD, old, AT_FDCWD, new, 0))
    }
    fn linkat (old_dir: c_int, old: *const c_char, new_dir: c_int, new: *const c_char, flags: c_int) -> c_int {
        errno::int(linked(old_dir, old, new_dir, new, flags))
    }
    fn symlink (to: *const c_char, path: *const c_char) -> c_int { errno::int(pointed(to, AT_FDCWD, path)) }
    fn symlinkat (to: *const c_char, dir: c_int, path: *const c_char) -> c_int {
        errno::int(pointed(to, dir, path))
    }
    fn mkdir (path: *const c_char, mode: mode_t) -> c_int { errno::int(made_directory(AT_FDCWD, path, mode)) }
    fn mkdirat (dir: c_int, path: *const c_char, mode: mode_t) -> c_int {
        errno::int(made_directory(dir, path, mode))
    }
    fn mknod (path: *const c_char, mode: mode_t, device: dev_t) -> c_int {
        errno::int(made_node(AT_FDCWD, path, mode, device))
    }
    fn mknodat (dir: c_int, path: *const c_char, mode: mode_t, device: dev_t) -> c_int {
        errno::int(made_node(dir, path, mode, device))
    }
    fn mkfifo (path: *const c_char, mode: mode_t) -> c_int {
        errno::int(made_node(AT_FDCWD, path, mode | libc::S_IFIFO, 0))
    }
    fn mkfifoat (dir: c_int, path: *const c_char, mode: mode_t) -> c_int {
        errno::int(made_node(dir, path, mode | libc::S_IFIFO, 0))
    }
    fn unlink (path: *const c_char) -> c_int { errno::int(removed(AT_FDCWD, path, 0)) }
    fn unlinkat (dir: c_int, path: *const c_char, flags: c_int) -> c_int {
        errno::int(removed(dir, path, flags))
    }
    fn remove (path: *const c_char) -> c_int {
        errno::int(match removed(AT_FDCWD, path, 0) {
            Err(Errno::ISDIR) => removed(AT_FDCWD, path, AT_REMOVEDIR),
            done => done,
        })
    }
}

/// renameat2(2).
///
/// # Safety
/// As the system calls, for this and the following.
pub unsafe fn moved(
    old_dir: c_int,
    old: *const c_char,
    new_dir: c_int,
    new: *const c_char,
    flags: c_uint,
) -> Result<usize, Errno> {
    // First: where the names lead depends on which guards are up.
    // SAFETY: the caller's.
    unsafe {
        guard::once(old_dir, old, |old| raise_ahead(seen(old_dir, old).as_ref(), new_dir, new));
        if flags & RENAME_EXCHANGE != 0 {
            guard::once(new_dir, new, |new| raise_ahead(seen(new_dir, new).as_ref(), old_dir, old));
        }
    }
    let rename = || {
        // SAFETY: the caller's.
        unsafe {
            guard::acting(old_dir, old, |old| {
                guard::acting(new_dir, new, |new| move_file((old_dir, old), (new_dir, new), flags))
            })
        }
    };
    match rename() {
        Err(Errno::NOTEMPTY | Errno::EXIST) if flags == 0 && makes_way(new_dir, new) => rename(),
        done => done,
    }
}

/// True if what stood in the way of a directory was guards of what is gone, and is no more.
fn makes_way(dir: c_int, path: *const c_char) -> bool {
    // SAFETY: the callers'.
    unsafe { app::path(path) }.is_some_and(|path| directory::make_way(dir, path))
}

unsafe fn move_file(
    (old_dir, from): (c_int, Led),
    (new_dir, to): (c_int, Led),
    flags: c_uint,
) -> Result<usize, Errno> {
    let (old, new) = (from.path(), to.path());
    let rename = || {
        guard::act([from, to], || match flags {
            0 => unsafe_call!(SYS_renameat, old_dir, old, new_dir, new).map(drop),
            _ => unsafe_call!(SYS_renameat2, old_dir, old, new_dir, new, flags).map(drop),
        })
    };
    // SAFETY: the caller's.
    let (name, to) = unsafe { (app::path(old), app::path(new)) };
    let over = to.filter(|_| flags & RENAME_EXCHANGE == 0);
    let is_within = Cell::new(false);
    let logged = |retire: &dyn Fn(bool)| match name.zip(to) {
        Some((old, new)) => {
            let rename = |is_gone| {
                retire(is_gone);
                rename()
            };
            let ((), within) = named::moving((old_dir, old), (new_dir, new), how(flags), rename)?;
            is_within.set(within);
            Ok(())
        }
        None => {
            retire(false);
            rename()
        }
    };
    let call =
        |retire: &dyn Fn(bool)| cached::change_named(new_dir, over, AT_SYMLINK_NOFOLLOW, || logged(retire));
    // SAFETY: the caller's.
    let (source, victim) = unsafe { (seen(old_dir, old), seen(new_dir, new)) };
    let same = |a: &Seen, b: &Seen| a.file == b.file;
    let both = source.as_ref().zip(victim.as_ref());
    let goes = flags & RENAME_EXCHANGE == 0 && !both.is_some_and(|(a, b)| same(a, b));
    let over = || match &victim {
        Some(victim) if goes => victim.unlink(call),
        Some(victim) => victim.renamed(|| call(&|_| {})),
        None => call(&|_| {}),
    };
    match &source {
        Some(source) => source.renamed(over)?,
        None => {
            over()?;
            // SAFETY: the caller's.
            if let Some(path) = unsafe { app::path(new) }.filter(|_| !is_within.get()) {
                let name = name.filter(|_| old_dir == new_dir);
                arrived(new_dir, name, path);
            }
        }
    }
    Ok(0)
}

fn how(flags: c_uint) -> How {
    match flags {
        0 | RENAME_NOREPLACE => How::Plain,
        RENAME_EXCHANGE => How::Exchange,
        _ => How::Other,
    }
}

/// Before a managed file gets another name its guard is there, if that depends on the name.
unsafe fn raise_ahead(file: Option<&Seen>, dir: c_int, path: *const c_char) {
    let Some(file) = file.filter(|file| is_guarded_by_name(file)) else { return };
    // SAFETY: the caller's.
    let Some(path) = (unsafe { app::path(path) }) else { return };
    if let Some((fd, name)) = sys::parent_of(dir, path) {
        DAEMON.renaming(file.file, sys::borrow(fd), name);
        sys::close(fd);
    }
}

fn is_guarded_by_name(seen: &Seen) -> bool {
    let shm = seen.engine.shm();
    let root = seen.engine.file(seen.file).and_then(|slot| shm.root(slot.root()));
    let preset = root.and_then(|root| root.kind());
    preset.is_some_and(stand_in::is_beside)
}

/// A file that is not managed got a name below a root: descriptors that this process has of it must be
/// looked at anew. `from`: the name that it had, from the same directory on.
fn arrived(dir: c_int, from: Option<&CStr>, path: &CStr) {
    let Some(engine) = session::joined() else { return };
    if from.is_some_and(|from| sys::are_beside(from, path)) && policy::is_any_alone(engine.shm()) {
        return;
    }
    let mut room = [0; libc::PATH_MAX as usize];
    let Ok(fd) = sys::openat(dir, path, libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC, 0) else { return };
    let name = sys::name_of(fd, &mut room);
    if name.and_then(|name| policy::decide(engine.shm(), name)).is_some() {
        fdtable::reset_unmanaged();
    }
    sys::close(fd);
}

/// linkat(2).
pub unsafe fn linked(
    old_dir: c_int,
    old: *const c_char,
    new_dir: c_int,
    new: *const c_char,
    flags: c_int,
) -> Result<usize, Errno> {
    // SAFETY: the caller's.
    unsafe {
        guard::acting(old_dir, old, |old| {
            guard::acting(new_dir, new, |new| link_file((old_dir, old), (new_dir, new), flags))
        })
    }
}

unsafe fn link_file(
    (old_dir, from): (c_int, Led),
    (new_dir, to): (c_int, Led),
    flags: c_int,
) -> Result<usize, Errno> {
    let (old, new) = (from.path(), to.path());
    let link = || guard::act([from, to], || unsafe_call!(SYS_linkat, old_dir, old, new_dir, new, flags));
    // SAFETY: the caller's.
    let to = unsafe { app::path(new) };
    // SAFETY: the caller's.
    let call = || match unsafe { app::path(old) }.zip(to) {
        Some((old, new)) => named::linking((old_dir, old), (new_dir, new), flags, link),
        None => link(),
    };
    // linkat's flags are the reverse of fstatat's: it does not follow links unless told to.
    let follow = if flags & libc::AT_SYMLINK_FOLLOW != 0 { 0 } else { AT_SYMLINK_NOFOLLOW };
    // SAFETY: the caller's.
    let source = unsafe { app::path(old) }
        .and_then(|path| look::at(old_dir, path, follow | flags & libc::AT_EMPTY_PATH));
    match source {
        Some(source) => source.disturb(call),
        None => {
            let done = call()?;
            // SAFETY: the caller's.
            if let Some(path) = unsafe { app::path(new) } {
                arrived(new_dir, None, path);
            }
            Ok(done)
        }
    }
}

/// symlinkat(2). If it makes a tablespace the daemon hears of it before a file can be made in there.
pub unsafe fn pointed(to: *const c_char, dir: c_int, path: *const c_char) -> Result<usize, Errno> {
    let link = || unsafe_call!(SYS_symlinkat, to, dir, path);
    // SAFETY: the caller's.
    let path = unsafe { app::path(path) };
    let done = path.map_or_else(link, |path| named::making_new(dir, path, link))?;
    let leads_to_data = path.is_some_and(|path| policy::may_be_tablespace(path.to_bytes()));
    if leads_to_data
        && let Some(engine) = session::engine().filter(|engine| policy::has_tablespaces(engine.shm()))
        && !DAEMON.look_for_roots(engine)
    {
        sys::say(&["a tablespace is not in the log, so its pages can tear; the daemon's log says why"]);
    }
    Ok(done)
}

/// mkdirat(2).
///
/// # Safety
/// As the system call.
pub unsafe fn made_directory(dir: c_int, path: *const c_char, mode: mode_t) -> Result<usize, Errno> {
    let make = || unsafe_call!(SYS_mkdirat, dir, path, mode);
    // SAFETY: the caller's.
    unsafe { app::path(path) }.map_or_else(make, |path| named::making_new(dir, path, make))
}

/// mknodat(2).
///
/// # Safety
/// As the system call.
pub unsafe fn made_node(
    dir: c_int,
    path: *const c_char,
    mode: mode_t,
    device: dev_t,
) -> Result<usize, Errno> {
    let make = || unsafe_call!(SYS_mknodat, dir, path, mode, device);
    // SAFETY: the caller's.
    unsafe { app::path(path) }.map_or_else(make, |path| named::other(dir, path, make))
}

/// unlinkat(2).
pub unsafe fn removed(dir: c_int, path: *const c_char, flags: c_int) -> Result<usize, Errno> {
    let remove = |led: Led| {
        let path = led.path();
        // SAFETY: the caller's.
        let name = unsafe { app::path(path) }.filter(|_| flags & AT_REMOVEDIR == 0);
        let unlink = || led.act(|| unsafe_call!(SYS_unlinkat, dir, path, flags));
        // SAFETY: the caller's.
        let logged = |retire: &dyn Fn(bool)| match (unsafe { app::path(path) }, name) {
            (_, Some(name)) => named::removing(dir, name, |is_gone| {
                retire(is_gone);
                unlink()
            }),
            (Some(directory), None) => named::removing_directory(dir, directory, unlink),
            (None, None) => unlink(),
        };
        let call =
            |retire: &dyn Fn(bool)| cached::change_named(dir, name, AT_SYMLINK_NOFOLLOW, || logged(retire));
        // SAFETY: the caller's.
        match unsafe { seen(dir, path) }.filter(|_| flags & AT_REMOVEDIR == 0) {
            Some(victim) => victim.unlink(|retire| call(retire).map(drop)).map(|()| 0),
            None => call(&|_| {}),
        }
    };
    // SAFETY: the caller's.
    if let Some(name) = unsafe { app::path(path) }.filter(|_| flags == 0)
        && let Some(done) = super::absent::removed(dir, name)
    {
        return done;
    }
    // SAFETY: the caller's.
    let remove = || unsafe { guard::acting(dir, path, remove) };
    match remove() {
        Err(Errno::NOTEMPTY | Errno::EXIST) if flags & AT_REMOVEDIR != 0 && makes_way(dir, path) => remove(),
        done => done,
    }
}

unsafe fn seen(dir: c_int, path: *const c_char) -> Option<Seen> {
    // SAFETY: the caller's.
    look::at(dir, unsafe { app::path(path) }?, AT_SYMLINK_NOFOLLOW)
}
