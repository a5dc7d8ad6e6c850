//! open and its kin. For a managed file O_TRUNC is done by the engine, and O_DSYNC, O_SYNC and O_DIRECT are
//! taken off: the log makes the write durable, and the page cache publishes it.

use core::ffi::{CStr, c_char, c_int};

use libc::{
    O_ACCMODE, O_CREAT, O_DIRECT, O_DIRECTORY, O_DSYNC, O_EXCL, O_PATH, O_RDONLY, O_SYNC, O_TRUNC, mode_t,
};
use seawall_core::Errno;
use seawall_core::naming::Making;

use super::origin::fresh;
use super::truncate_fallocate::file as truncate;
use super::{point, real_or};
use crate::classify::{self, Intent, Kind};
use crate::fdtable::{self, mark};
use crate::guard::Led;
use crate::sys::{self, unsafe_call};
use crate::{app, cached, errno, guard, look, named, session, unsynced};

const HERE: c_int = libc::AT_FDCWD;

const CREAT: c_int = O_CREAT | libc::O_WRONLY | O_TRUNC;

point! {
    fn open | open64 | __open | __open64 (path: *const c_char, flags: c_int, mode: mode_t) -> c_int,
        passes if { is_simple(HERE, path, flags) } then |fd| { opened(fd, flags) }
    {
        errno::int(at(HERE, path, flags, mode))
    }

    fn __open_2 | __open64_2 (path: *const c_char, flags: c_int) -> c_int,
        passes if { is_simple(HERE, path, flags) } then |fd| { opened(fd, flags) }
    {
        errno::int(at(HERE, path, flags, 0))
    }

    fn openat | openat64 (dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int,
        passes if { is_simple(dir, path, flags) } then |fd| { opened(fd, flags) }
    {
        errno::int(at(dir, path, flags, mode))
    }

    fn __openat_2 | __openat64_2 (dir: c_int, path: *const c_char, flags: c_int) -> c_int,
        passes if { is_simple(dir, path, flags) } then |fd| { opened(fd, flags) }
    {
        errno::int(at(dir, path, flags, 0))
    }

    fn creat | creat64 (path: *const c_char, mode: mode_t) -> c_int,
        passes if { is_simple(HERE, path, CREAT) } then |fd| { opened(fd, CREAT) }
    {
        errno::int(at(HERE, path, CREAT, mode))
    }

    fn open_by_handle_at (mount: c_int, handle: *mut libc::file_handle, flags: c_int) -> c_int,
        passes if { true } then |fd| { opened_unseen(fd, flags); }
    {
        let fd = real_or!(-1, c"open_by_handle_at",
            fn(mount: c_int, handle: *mut libc::file_handle, flags: c_int) -> c_int);
        opened_unseen(fd, flags)
    }
}

/// True if the open is the kernel's alone: of a path that means what it says, and in a way that changes no file. What is
/// no file may block, so an open of that is libc's in any case.
///
/// # Safety
/// As openat(2).
unsafe fn is_simple(dir: c_int, path: *const c_char, flags: c_int) -> bool {
    if session::is_off() {
        return true;
    }
    // SAFETY: the caller's, for both.
    let (is_clear, name) = unsafe { (guard::stays_clear_of(dir, path), app::path(path)) };
    let is_special = |name| sys::fstatat(dir, name, 0).is_ok_and(|stat| !stat.regular);
    let may_make = named::may_make(flags) || unsynced::may_make(flags);
    is_clear && (!is_delicate(flags) && !may_make || name.is_none_or(is_special))
}

/// Libc's own open has made `fd`.
fn opened(fd: c_int, flags: c_int) {
    match is_delicate(flags) && !session::is_off() {
        true => {
            opened_unseen(fd, flags);
        }
        false if fd >= 0 => {
            plain(fd, flags);
            classify::opened(fd);
        }
        false => {}
    }
}

/// openat(2).
///
/// # Safety
/// As openat(2).
pub unsafe fn at(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> Result<usize, Errno> {
    let call = |led: Led, flags: c_int| {
        let path = led.path();
        // SAFETY: the caller's.
        let name = unsafe { app::path(path) }.filter(|_| !session::is_off());
        let open = |flags: c_int, is_any: bool| match name.filter(|_| is_delicate(flags) && !is_any) {
            Some(name) => delicate(dir, (name, led), flags, mode),
            None => unsynced::making(flags, || {
                led.act(|| unsafe_call!(SYS_openat, dir, path, flags, mode))
                    .inspect(|fd| plain(*fd as c_int, flags))
            })
            .map(|fd| Opened::Done(fd as c_int)),
        };
        let opened = match name.filter(|_| named::may_make(flags)) {
            Some(name) => named::making(dir, name, |how, is_any| {
                let is_there = how == Making::Opens && flags & O_EXCL == 0;
                let flags = if is_there { flags & !O_CREAT } else { flags };
                // Nothing is taken off a file that is nobody's before its first sync.
                let is_any = is_any && flags & (O_DSYNC | O_SYNC | O_DIRECT) == 0;
                let opened = open(flags, is_any);
                opened.inspect(|opened| {
                    if let (true, Opened::Done(fd)) = (is_any, opened) {
                        fdtable::found_any(*fd);
                    }
                })
            }),
            None => open(flags, false),
        }?;
        // With the directory free again: the daemon looks at it when it registers the file.
        match opened {
            Opened::Done(fd) => {
                classify::opened(fd);
                Ok(fd as usize)
            }
            Opened::Delicately { fd, flags, taken } => after(fd, flags, taken),
        }
    };
    // SAFETY: the caller's.
    if let Some(name) = unsafe { app::path(path) }
        && let Some(opened) = super::absent::opened(dir, name, flags, mode)
    {
        return opened.inspect(|fd| plain(*fd, flags)).map(|fd| fd as usize);
    }
    // What is met may be a guard, which is not to be truncated.
    // SAFETY: the caller's.
    match flags & O_TRUNC != 0 && writes(flags) && !unsafe { guard::stays_clear_of(dir, path) } {
        true => {
            // SAFETY: the caller's.
            let fd = unsafe { guard::acting(dir, path, |led| call(led, flags & !O_TRUNC)) }?;
            truncated(fd as c_int)
        }
        // SAFETY: the caller's.
        false => unsafe { guard::acting(dir, path, |led| call(led, flags)) },
    }
}

/// openat2(2), if it truncates: the block cache hears of it.
///
/// # Safety
/// As openat2(2); `call` makes it.
pub unsafe fn unseen_truncation(
    dir: c_int,
    path: *const c_char,
    how: *const u64,
    call: impl FnOnce() -> Result<usize, Errno>,
) -> Option<Result<usize, Errno>> {
    if session::is_off() {
        return None;
    }
    // SAFETY: the first member of `struct open_how` is its flags.
    let flags = unsafe { app::value(how) }? as c_int;
    // SAFETY: the caller's.
    let path = unsafe { app::path(path) }.filter(|_| flags & O_TRUNC != 0)?;
    let opened = cached::change_opened(dir, path, 0, || call().map(|fd| fd as c_int));
    Some(super::origin::made(opened.map(|fd| fd as usize)))
}

/// Truncates what was opened without O_TRUNC.
fn truncated(fd: c_int) -> Result<usize, Errno> {
    if sys::fstat(fd).is_ok_and(|stat| stat.regular && stat.size > 0)
        && let Err(e) = truncate(fd, 0)
    {
        give_up(Ok(fd as usize));
        return Err(e);
    }
    Ok(fd as usize)
}

/// Closes what was opened by mistake.
fn give_up(opened: Result<usize, Errno>) {
    if let Ok(fd) = opened {
        fdtable::reset(fd as c_int);
        sys::close(fd as c_int);
    }
}

/// True if the open itself may change a file, or how its writes reach the disk.
fn is_delicate(flags: c_int) -> bool {
    let is_new = flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL;
    let truncates = flags & O_TRUNC != 0 && !is_new;
    let syncs = flags & (O_DSYNC | O_SYNC | O_DIRECT) != 0 && writes(flags);
    (truncates || syncs) && flags & (O_PATH | O_DIRECTORY) == 0
}

fn writes(flags: c_int) -> bool {
    flags & O_ACCMODE != O_RDONLY
}

/// A file that was opened.
enum Opened {
    /// There is nothing left to do.
    Done(c_int),
    /// These flags are still to be seen to, of which some were taken off: [`after`].
    Delicately { fd: c_int, flags: c_int, taken: c_int },
}

#[cold]
fn delicate(dir: c_int, (path, led): (&CStr, Led), flags: c_int, mode: mode_t) -> Result<Opened, Errno> {
    let follow = if flags & libc::O_NOFOLLOW != 0 { libc::AT_SYMLINK_NOFOLLOW } else { 0 };
    let open = |flags: c_int| {
        let call = || led.act(|| sys::openat(dir, path, flags, mode));
        if flags & O_TRUNC != 0 { cached::change_opened(dir, path, follow, call) } else { call() }
    };
    if !writes(flags) {
        // O_RDONLY | O_TRUNC: there will be no descriptor to truncate by.
        let fd = match look::at(dir, path, follow) {
            Some(seen) => seen.pass(|| open(flags)),
            None => open(flags),
        };
        return fd.inspect(|fd| fresh(*fd)).map(Opened::Done);
    }
    let ours = look::will_be_managed(dir, path, flags);
    let mut taken = if ours { flags & (O_TRUNC | O_SYNC | O_DSYNC | O_DIRECT) } else { 0 };
    let may_make = taken & O_TRUNC != 0 && flags & (O_CREAT | O_EXCL) == O_CREAT;
    let (mut fd, is_new) = match may_make {
        true => made_or_found(dir, (path, led), flags & !taken, mode)?,
        false => (open(flags & !taken)?, false),
    };
    if taken & !O_TRUNC != 0 && !fdtable::has_room(fd) {
        // What was taken off could not be remembered.
        sys::close(fd);
        taken &= O_TRUNC;
        fd = open(flags & !(O_TRUNC | O_CREAT | O_EXCL))?;
    }
    fdtable::opened(fd, marks(flags, taken));
    let kept = if is_new { !O_TRUNC } else { !0 };
    Ok(Opened::Delicately { fd, flags: flags & kept, taken: taken & kept })
}

/// Opens a file that is truncated afterwards. True if the open has made it: then there is nothing to truncate, and it
/// would cost the file the set-id bits that it was made with.
fn made_or_found(
    dir: c_int,
    (path, led): (&CStr, Led),
    flags: c_int,
    mode: mode_t,
) -> Result<(c_int, bool), Errno> {
    let open = |flags: c_int| led.act(|| sys::openat(dir, path, flags, mode));
    match open(flags | O_EXCL) {
        Err(Errno::EXIST) => {}
        made => return made.map(|fd| (fd, true)),
    }
    // What is there may be a symbolic link whose file the open will make.
    let leads_nowhere = sys::fstatat(dir, path, 0) == Err(Errno::NOENT);
    let fd = open(flags)?;
    Ok((fd, leads_nowhere && sys::fstat(fd).is_ok_and(|stat| stat.size == 0)))
}

/// Finishes an open: names the descriptor's file now, while we know what was taken off, and truncates it. A
/// file that was swapped between the look and the open is found out here.
fn after(fd: c_int, flags: c_int, taken: c_int) -> Result<usize, Errno> {
    let kind = classify::look_up_or_register(fd, Intent::Write);
    if let Kind::Managed(target) = &kind {
        target.engine.opens(target.file, || Some(target.who));
        if taken & O_DSYNC != 0 {
            target.engine.opened_for_sync(target.file);
        }
    }
    let truncates = taken & O_TRUNC != 0 || flags & O_TRUNC != 0 && matches!(kind, Kind::Managed(_));
    if truncates && let Err(e) = truncate(fd, 0) {
        fdtable::reset(fd);
        sys::close(fd);
        return Err(e);
    }
    if crate::unseen::may_be_any() {
        classify::hold_for_life(fd);
    }
    Ok(fd as usize)
}

/// The marks of a descriptor opened with `flags`, of which `taken` were taken off.
fn marks(flags: c_int, taken: c_int) -> u64 {
    let of = |mark, yes| if yes { mark } else { 0 };
    of(mark::WRITABLE, writes(flags))
        | of(mark::APPEND, flags & libc::O_APPEND != 0)
        | of(mark::DSYNC, taken & O_DSYNC != 0)
        | of(mark::SYNC, taken & O_SYNC == O_SYNC)
        | of(mark::DIRECT, taken & O_DIRECT != 0)
}

/// An ordinary open: what the descriptor is will be asked at its first write.
fn plain(fd: c_int, flags: c_int) {
    match writes(flags) && flags & O_PATH == 0 && !session::is_off() {
        true => fdtable::opened(fd, marks(flags, 0)),
        false => fdtable::reset(fd),
    }
    if crate::unseen::may_be_any() {
        classify::hold_for_life(fd);
    }
}

/// A descriptor that was opened without a path: nothing was taken off, so the kernel keeps its promises by
/// itself. O_TRUNC has happened: what the log says of the file is over.
fn opened_unseen(fd: c_int, flags: c_int) -> c_int {
    if fd >= 0 {
        classify::opened(fd);
        fresh(fd);
        if flags & O_TRUNC != 0 {
            let _ = truncate(fd, 0);
        }
    }
    fd
}
