//! Directories whose names are in the log: what this process changes in them becomes records, and a small file that is
//! synced for the first time becomes one as a whole.
//!
//! | call | in such a directory |
//! |---|---|
//! | open with O_CREAT, fopen | a new file's name is a record, made before the call returns |
//! | unlink; rename of a file within the directory | a record, made before the kernel's call |
//! | mkdir, rmdir, link, symlink, mknod, rename of or over anything else, to or from another directory | the directory leaves the log first; its next fsync is real |
//! | the first fsync of a file of up to [`LARGEST`] bytes | all of it is a record: nothing waits for the disk |
//! | another durable way of such a file (a later fsync, a mapping, asynchronous writes) | the file is synced for real first, and the log hears of it |
//! | fsync of the directory | nothing is left to do |
//!
//! What each record means, and when it is made: `engine::names` in seawall-core.

use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use seawall_core::client::Course;
use seawall_core::file::Flag;
use seawall_core::format::{Attributes, Handle, NAME_MAX, NAMED_HANDLE_MAX, NameChange};
use seawall_core::{Engine, Errno, FileRef, Owner, Place, Turn, certain, directory, policy};

use crate::client::DAEMON;
use crate::fdtable::{self, State};
use crate::sys::{self, Stat, unsafe_call};
use crate::{again, owner, session};

/// Bytes of a file that becomes a record as a whole: a larger one is as soon on the disk.
pub const LARGEST: usize = 128 << 10;
/// What of it fits on the stack.
const SMALL: usize = 8 << 10;
/// So many small new files are synced for real before their directory is asked for.
const SYNCS: u32 = 2;

/// The directory for which the daemon was asked in vain.
static REFUSED: AtomicU64 = AtomicU64::new(0);
/// The device that one is on: where the order of names is not kept no directory of it is asked for because of its files.
static REFUSED_ON: AtomicU64 = AtomicU64::new(0);
/// The directory in which small files were synced for real, and how many.
static SYNCED_IN: AtomicU64 = AtomicU64::new(0);
static SYNCED: AtomicU32 = AtomicU32::new(0);

/// A directory in the log, and the part of a path that is in it.
struct Here {
    engine: &'static Engine,
    who: Owner,
    directory: FileRef,
    fd: c_int,
    /// It is this call's own, by O_PATH.
    is_own: bool,
    inode: (u64, u64),
    uid: u32,
    /// When it was found.
    changed: u64,
}

impl Drop for Here {
    fn drop(&mut self) {
        if self.is_own {
            sys::close(self.fd);
        }
    }
}

impl Here {
    /// A descriptor that can be synced.
    fn with_open(&self, op: impl FnOnce(c_int) -> Result<(), Errno>) -> Result<(), Errno> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let fd = sys::openat(self.fd, c".", flags, 0)?;
        let done = op(fd);
        sys::close(fd);
        done
    }

    /// What has just been made at `name`, if anything was.
    fn has_made(&self, turn: &Turn<'_, Self>, name: &CStr) {
        match self.at(name).filter(|(stat, _)| stat.links == 1 && stat.uid == self.uid) {
            Some((stat, file)) => {
                let attributes = attributes(&stat);
                turn.log(&NameChange::Made { name: name.to_bytes(), file, attributes });
            }
            None if sys::exists(self.fd, name) => turn.leave(),
            None => {}
        }
    }

    /// The file at `name`, as far as a record can name it.
    fn at(&self, name: &CStr) -> Option<(Stat, Handle)> {
        let stat = sys::fstatat(self.fd, name, libc::AT_SYMLINK_NOFOLLOW).ok().filter(|stat| stat.regular)?;
        Some((stat, handle(self.fd, name, 0)?))
    }
}

impl Place for Here {
    fn changed_before(&self) -> u64 {
        self.changed
    }

    fn changed(&self) -> u64 {
        directory::changed(sys::borrow(self.fd))
    }

    fn sync(&self, with_files: bool) -> Result<(), Errno> {
        self.with_open(|fd| match with_files {
            true => unsafe_call!(SYS_syncfs, fd).map(drop),
            false => unsafe_call!(SYS_fsync, fd).map(drop),
        })
    }

    fn check(&self) -> Result<(), Errno> {
        self.with_open(|fd| certain::check(sys::borrow(fd)))
    }
}

/// The log, if a directory is in it.
#[inline]
pub fn engine() -> Option<&'static Engine> {
    session::joined().filter(|engine| engine.has_directories())
}

/// True if the call may make a name in a directory that is in the log.
#[inline]
pub fn may_make(flags: c_int) -> bool {
    flags & libc::O_CREAT != 0 && engine().is_some()
}

/// The directory that a path's last part is in, if it is in the log, and that part.
fn parent<'p>(dir: c_int, path: &CStr, room: &'p mut [u8; NAME_MAX + 1]) -> Option<(Here, &'p CStr)> {
    let engine = engine()?;
    let (fd, base) = sys::parent_of(dir, path)?;
    let here = here(engine, fd, true)?;
    room.get_mut(..base.len())?.copy_from_slice(base);
    *room.get_mut(base.len())? = 0;
    let name = CStr::from_bytes_until_nul(room).ok()?;
    (!name.is_empty()).then_some((here, name))
}

/// The directory behind `fd`, if it is in the log. Closes `fd` if it is the call's own and is not.
fn here(engine: &'static Engine, fd: c_int, is_own: bool) -> Option<Here> {
    let found = sys::fstat(fd).ok().and_then(|stat| found(engine, fd, is_own, &stat));
    if found.is_none() && is_own {
        sys::close(fd);
    }
    found
}

/// The same of one that was looked at.
fn found(engine: &'static Engine, fd: c_int, is_own: bool, stat: &Stat) -> Option<Here> {
    let directory = engine.find(stat.dev, stat.ino)?;
    let who = engine.state(directory).has(Flag::DIRECTORY).then(|| owner::current(engine)).flatten()?;
    let (inode, uid, changed) = ((stat.dev, stat.ino), stat.uid, stat.changed);
    Some(Here { engine, who, directory, fd, is_own, inode, uid, changed })
}

/// Who the file at a name is, or behind a descriptor (an empty name, AT_EMPTY_PATH).
fn handle(fd: c_int, name: &CStr, flags: c_int) -> Option<Handle> {
    #[repr(C)]
    struct Raw {
        bytes: u32,
        kind: i32,
        handle: [u8; NAMED_HANDLE_MAX],
    }
    let mut raw = Raw { bytes: NAMED_HANDLE_MAX as u32, kind: 0, handle: [0; NAMED_HANDLE_MAX] };
    let mut mount: c_int = 0;
    unsafe_call!(SYS_name_to_handle_at, fd, name.as_ptr(), &raw mut raw, &raw mut mount, flags).ok()?;
    Handle::new(raw.kind, raw.handle.get(..raw.bytes as usize)?)
}

/// A call that may make a file at this path. It learns whether it will, in a directory that is in the log, and whether no preset
/// wants such a file before its first sync.
pub fn making<R>(dir: c_int, path: &CStr, call: impl FnOnce(bool) -> R) -> R {
    let mut room = [0; NAME_MAX + 1];
    let Some((here, name)) = parent(dir, path, &mut room) else { return call(false) };
    let turn = here.engine.enter_directory(here.who, here.directory, &here);
    let was_there = sys::exists(here.fd, name);
    if was_there {
        // Should it be removed meanwhile, what is made shows in the directory's change time.
        turn.finish();
        return call(false);
    }
    let is_any = ![&b"-wal"[..], b"-journal"].iter().any(|end| name.to_bytes().ends_with(end));
    let done = call(is_any);
    here.has_made(&turn, name);
    turn.finish();
    done
}

/// A call of libc's that makes a file at a path which it makes up itself, in the place of `template`.
///
/// # Safety
/// As mkstemp(3).
pub unsafe fn making_up(template: *mut core::ffi::c_char, call: impl FnOnce() -> c_int) -> c_int {
    let mut room = [0; NAME_MAX + 1];
    // SAFETY: the caller's.
    let path = engine().and_then(|_| unsafe { crate::app::path(template) });
    let Some((here, _)) = path.and_then(|path| parent(libc::AT_FDCWD, path, &mut room)) else {
        return call();
    };
    let turn = here.engine.enter_directory(here.who, here.directory, &here);
    let fd = call();
    // SAFETY: as above; libc has changed it.
    let made = if fd < 0 { None } else { unsafe { crate::app::path(template) } };
    if let Some(path) = made {
        let bytes = path.to_bytes_with_nul();
        let base = bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let name = CStr::from_bytes_with_nul(&bytes[base..]).unwrap_or_default();
        here.has_made(&turn, name);
    }
    turn.finish();
    fd
}

/// A call that makes or removes something that no record can say.
pub fn other<R>(dir: c_int, path: &CStr, call: impl FnOnce() -> R) -> R {
    let mut room = [0; NAME_MAX + 1];
    let Some((here, _)) = parent(dir, path, &mut room) else { return call() };
    let turn = here.engine.enter_directory(here.who, here.directory, &here);
    turn.leave();
    let done = call();
    turn.finish();
    done
}

/// unlink(2).
pub fn removing<R>(dir: c_int, path: &CStr, call: impl FnOnce() -> Result<R, Errno>) -> Result<R, Errno> {
    let mut room = [0; NAME_MAX + 1];
    let Some((here, name)) = parent(dir, path, &mut room) else { return call() };
    let turn = here.engine.enter_directory(here.who, here.directory, &here);
    let name_bytes = name.to_bytes();
    let victim = here.at(name);
    let gone = victim.map(|(_, file)| file);
    match gone {
        Some(file) => drop(turn.log(&NameChange::Gone { name: name_bytes, file })),
        // Nothing to remove, or no file.
        None if sys::exists(here.fd, name) => turn.leave(),
        None => {}
    }
    let done = call();
    if let Some(file) = gone.filter(|_| done.is_err() && turn.is_in_log()) {
        turn.log(&NameChange::Is { name: name_bytes, file: Some(file) });
    }
    has_lost(&turn, victim, done.is_ok());
    turn.finish();
    done
}

/// renameat2(2). True if it was within a directory in the log.
pub fn moving<R>(
    (old_dir, old): (c_int, &CStr),
    (new_dir, new): (c_int, &CStr),
    is_plain: bool,
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<(R, bool), Errno> {
    let outside = |done: Result<R, Errno>| done.map(|done| (done, false));
    if engine().is_none() {
        return outside(call());
    }
    let (mut old_room, mut new_room) = ([0; NAME_MAX + 1], [0; NAME_MAX + 1]);
    let from = parent(old_dir, old, &mut old_room);
    let within = from.as_ref().filter(|_| is_plain && old_dir == new_dir).and_then(|_| beside(old, new));
    let to = if within.is_some() { None } else { parent(new_dir, new, &mut new_room) };
    let (here, name, to_name) = match (from, to, within) {
        (Some((here, name)), None, Some(to)) => (here, name, to),
        (Some((here, name)), Some((there, to)), _) if is_plain && here.inode == there.inode => {
            (here, name, to)
        }
        (from, to, _) => {
            leaving(old_dir, old);
            leaving(new_dir, new);
            return outside(across(from.map(|(here, _)| here), to.map(|(here, _)| here), call));
        }
    };
    let (source, victim) = (here.at(name), here.at(to_name));
    let is_other = source.is_none() && sys::exists(here.fd, name);
    if is_other {
        leaving(old_dir, old);
        leaving(new_dir, new);
    }
    let turn = here.engine.enter_directory(here.who, here.directory, &here);
    // Asked before, it may be another one by now.
    let (source, victim) = match turn.is_first() {
        true => (source, victim),
        false => (here.at(name), here.at(to_name)),
    };
    let is_victim_known = victim.is_some() || !sys::exists(here.fd, to_name);
    let is_there = source.is_some() || sys::exists(here.fd, name);
    let (name, to) = (name.to_bytes(), to_name.to_bytes());
    let over = victim.map(|(_, file)| file);
    let moved = source.map(|(_, file)| file).filter(|file| is_victim_known && over != Some(*file));
    match moved {
        Some(file) => drop(turn.log(&NameChange::Moved { name, to, file, over })),
        None if is_there => turn.leave(),
        // There is nothing that could move.
        None => {}
    }
    let done = call();
    if let Some(file) = moved.filter(|_| done.is_err() && turn.is_in_log()) {
        turn.log(&NameChange::Is { name, file: Some(file) });
        turn.log(&NameChange::Is { name: to, file: over });
    }
    has_lost(&turn, victim, done.is_ok() && moved.is_some());
    turn.finish();
    done.map(|done| (done, true))
}

/// The last part of `new`, if it is in the directory that `old` is in by the same words.
fn beside<'p>(old: &CStr, new: &'p CStr) -> Option<&'p CStr> {
    let part = |path: &[u8]| path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let at = part(new.to_bytes());
    let is_same = old.to_bytes()[..part(old.to_bytes())] == new.to_bytes()[..at];
    let name = CStr::from_bytes_with_nul(&new.to_bytes_with_nul()[at..]).ok()?;
    (is_same && !name.is_empty() && name.count_bytes() <= NAME_MAX).then_some(name)
}

/// A file may have lost its last name.
fn has_lost(turn: &Turn<'_, Here>, victim: Option<(Stat, Handle)>, is_done: bool) {
    if let Some((stat, _)) = victim.filter(|(stat, _)| is_done && stat.links == 1) {
        turn.lost((stat.dev, stat.ino));
    }
}

/// The directory at this path is about to go, or to be elsewhere: it leaves the log.
pub fn leaving(dir: c_int, path: &CStr) {
    let Some(engine) = engine() else { return };
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let Ok(fd) = sys::openat(dir, path, flags, 0) else { return };
    if let Some(here) = here(engine, fd, true) {
        let turn = here.engine.enter_directory(here.who, here.directory, &here);
        turn.leave();
        turn.finish();
    }
}

/// A rename that no record can say: both directories leave the log, in the order of their slots.
fn across<R>(from: Option<Here>, to: Option<Here>, call: impl FnOnce() -> R) -> R {
    let (mut first, mut second) = (from, to);
    if let (Some(a), Some(b)) = (&first, &second) {
        if a.inode == b.inode {
            second = None;
        } else if a.directory.slot > b.directory.slot {
            core::mem::swap(&mut first, &mut second);
        }
    }
    let enter = |here: &Option<Here>, then: &mut dyn FnMut()| match here {
        Some(here) => {
            let turn = here.engine.enter_directory(here.who, here.directory, here);
            turn.leave();
            then();
            turn.finish();
        }
        None => then(),
    };
    let (mut call, mut done) = (Some(call), None);
    enter(&first, &mut || enter(&second, &mut || done = call.take().map(|call| call())));
    done.unwrap_or_else(|| unreachable!("it was called once"))
}

/// fsync(2) or fdatasync(2) of `fd`, if that is a directory in the log, or one that may be.
pub fn sync_directory(fd: c_int, stat: &Stat) -> Option<Result<(), Errno>> {
    let engine = session::joined().filter(|_| stat.directory)?;
    if engine.find(stat.dev, stat.ino).is_none() {
        register(engine, fd, stat);
    }
    let here = found(engine, fd, false, stat)?;
    engine.sync_directory_names(here.who, here.directory, &here)
}

/// Asks the daemon for a directory. It says no for good where the file system does not keep the order of names.
#[cold]
fn register(engine: &'static Engine, fd: c_int, stat: &Stat) {
    let mut room = [0; libc::PATH_MAX as usize];
    let is_wanted = engine.pool().journal().is_none()
        && REFUSED.load(Relaxed) != mark(stat)
        && sys::name_of(fd, &mut room)
            .is_some_and(|path| policy::decide_directory(engine.shm(), path).is_some());
    if !is_wanted {
        return;
    }
    match DAEMON.register(engine, sys::borrow(fd), false) {
        Course::Log(_) => {}
        Course::Leave | Course::AskAgain | Course::AskNext | Course::Unanswered => {
            REFUSED.store(mark(stat), Relaxed);
            REFUSED_ON.store(stat.dev, Relaxed);
        }
    }
}

fn mark(stat: &Stat) -> u64 {
    stat.ino ^ stat.dev.rotate_left(32)
}

/// Makes all of a file that is synced for the first time a record. False: it is to be looked at further, and synced for real
/// maybe.
pub fn first_sync(fd: c_int) -> bool {
    let Some(engine) = engine() else { return false };
    let entry = fdtable::get(fd);
    let is_candidate = entry.state() == State::Candidate && entry.count() == 0;
    let Some(stat) = Some(fd).filter(|_| is_candidate).and_then(|fd| sys::fstat(fd).ok()) else {
        return false;
    };
    let is_small = stat.regular && stat.links == 1 && stat.size <= LARGEST as u64;
    if !is_small || engine.find(stat.dev, stat.ino).is_some() || again::is_known(fd, &stat) {
        return false;
    }
    let is_captured = capture(engine, fd, &stat);
    if is_captured {
        again::was_synced(fd, &stat);
        fdtable::set(fd, entry.counted(1));
    }
    is_captured
}

fn capture(engine: &'static Engine, fd: c_int, stat: &Stat) -> bool {
    let mut whole = [0; libc::PATH_MAX as usize];
    let mut room = [0; NAME_MAX + 1];
    let here = path_of_any(engine, fd, &mut whole).and_then(|path| parent(libc::AT_FDCWD, path, &mut room));
    here.is_some_and(|(here, name)| here.capture(fd, name, stat.size))
}

/// Where the file behind `fd` is, if it may be any program's.
fn path_of_any<'r>(
    engine: &Engine,
    fd: c_int,
    room: &'r mut [u8; libc::PATH_MAX as usize],
) -> Option<&'r CStr> {
    let mut link = [0; libc::PATH_MAX as usize];
    let path = sys::name_of(fd, &mut link)?;
    let manage = policy::decide(engine.shm(), path).map(|(_, manage)| manage);
    if manage == Some(policy::Manage::Again) { sys::copied(path, room) } else { None }
}

/// A file was synced for real. A program that syncs its new files, and not their directory, is served as well: from its next
/// ones on.
#[cold]
pub fn synced_for_real(engine: &'static Engine, fd: c_int, stat: &Stat) {
    let is_small = stat.regular && stat.links == 1 && stat.size <= LARGEST as u64;
    let may_be_asked = engine.pool().journal().is_none() && REFUSED_ON.load(Relaxed) != stat.dev;
    if !is_small || !may_be_asked || !policy::has_any(engine.shm()) {
        return;
    }
    let mut whole = [0; libc::PATH_MAX as usize];
    let mut room = [0; NAME_MAX + 1];
    if let Some(path) = path_of_any(engine, fd, &mut whole)
        && parent(libc::AT_FDCWD, path, &mut room).is_none()
    {
        ask_for_parent(engine, path);
    }
}

#[cold]
fn ask_for_parent(engine: &'static Engine, path: &CStr) {
    let Some((fd, _)) = sys::parent_of(libc::AT_FDCWD, path) else { return };
    if let Ok(stat) = sys::fstat(fd)
        && REFUSED.load(Relaxed) != mark(&stat)
        && is_due(&stat)
    {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        if let Ok(open) = sys::openat(fd, c".", flags, 0) {
            register(engine, open, &stat);
            if let Some(here) = here(engine, open, false) {
                // The real one that takes it into the log. What came of it, its own fsync will be told.
                let _ = engine.sync_directory_names(here.who, here.directory, &here);
            }
            sys::close(open);
        }
    }
    sys::close(fd);
}

fn is_due(stat: &Stat) -> bool {
    if SYNCED_IN.swap(mark(stat), Relaxed) != mark(stat) {
        SYNCED.store(0, Relaxed);
    }
    SYNCED.fetch_add(1, Relaxed) + 1 >= SYNCS
}

impl Here {
    /// All of the file at `name`, which `fd` is, becomes a record.
    fn capture(&self, fd: c_int, name: &CStr, size: u64) -> bool {
        let turn = self.engine.enter_directory(self.who, self.directory, self);
        if !turn.is_in_log() {
            turn.finish();
            return false;
        }
        let is_captured = with_content(fd, size, |data| {
            let stat = sys::fstat(fd).ok().filter(|stat| stat.links == 1 && stat.uid == self.uid)?;
            let named = sys::fstatat(self.fd, name, libc::AT_SYMLINK_NOFOLLOW).ok()?;
            let is_it = (stat.dev, stat.ino) == (named.dev, named.ino);
            let file = handle(fd, c"", libc::AT_EMPTY_PATH).filter(|_| is_it && !has_attributes(fd))?;
            let change =
                NameChange::Content { name: name.to_bytes(), file, attributes: attributes(&stat), data };
            Some(turn.capture(&change, (stat.dev, stat.ino), &file))
        });
        turn.finish();
        is_captured == Some(true)
    }
}

/// True if the file has extended attributes, access control lists among them, that one which is made again would lack. Its
/// label is given by its directory.
fn has_attributes(fd: c_int) -> bool {
    const LABEL: &[u8] = b"security.selinux\0";
    let mut names = [0; LABEL.len()];
    match unsafe_call!(SYS_flistxattr, fd, names.as_mut_ptr(), names.len()) {
        Ok(len) => len > 0 && names[..len] != *LABEL,
        Err(error) => error != Errno::OPNOTSUPP,
    }
}

/// Calls `op` with all that the file behind `fd` has. `None`: it cannot be read, or is too large.
fn with_content<R>(fd: c_int, size: u64, op: impl FnOnce(&[u8]) -> Option<R>) -> Option<R> {
    let mut nothing = 0_u8;
    if unsafe_call!(SYS_pread64, fd, &raw mut nothing, 0, 0) != Err(Errno::BADF) {
        return read_whole(fd, size, op);
    }
    if has_locks(fd) {
        return None;
    }
    let mut link = [0; 32];
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let again = sys::openat(libc::AT_FDCWD, sys::proc_link(fd, &mut link)?, flags, 0).ok()?;
    let done = read_whole(again, size, op);
    sys::close(again);
    done
}

/// True if somebody, this process maybe, has locks on ranges of the file, which closing another descriptor of it would drop.
/// Asked for an open file description's lock, with which a process's own locks conflict too.
fn has_locks(fd: c_int) -> bool {
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as _,
        l_whence: libc::SEEK_SET as _,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    let asked = unsafe_call!(SYS_fcntl, fd, libc::F_OFD_GETLK, &raw mut lock);
    asked.is_err() || lock.l_type != libc::F_UNLCK as libc::c_short
}

fn read_whole<R>(fd: c_int, size: u64, op: impl FnOnce(&[u8]) -> Option<R>) -> Option<R> {
    if size < SMALL as u64 {
        let mut small = [0; SMALL];
        let len = read_all(fd, &mut small)?;
        return op(&small[..len]);
    }
    sys::with_pages(LARGEST + 1, |pages| {
        let len = read_all(fd, pages)?;
        op(&pages[..len])
    })?
}

/// How much it has. `None`: more than there is room for.
fn read_all(fd: c_int, room: &mut [u8]) -> Option<usize> {
    let mut len = 0;
    loop {
        let rest = room.get_mut(len..).filter(|rest| !rest.is_empty())?;
        let n = unsafe_call!(SYS_pread64, fd, rest.as_mut_ptr(), rest.len(), len).ok()?;
        len += n;
        // Of a file less is read only at its end.
        if n < room.len() - (len - n) {
            return Some(len);
        }
    }
}

fn attributes(stat: &Stat) -> Attributes {
    Attributes { mode: stat.mode & 0o7777, uid: stat.uid, gid: stat.gid, modified: stat.modified }
}

/// The file behind `fd` has been synced for real, or is about to become durable in a way that is not seen: what the log has of
/// it as a whole must not come back over that.
///
/// # Errors
/// What the disk said to the sync that is made first, unless `is_synced`.
pub fn settle(fd: c_int, stat: &Stat, is_synced: bool) -> Result<(), Errno> {
    let Some(engine) = engine() else { return Ok(()) };
    let Some(captured) = engine.captured((stat.dev, stat.ino)) else { return Ok(()) };
    if !is_synced {
        unsafe_call!(SYS_fsync, fd)?;
    }
    certain::check(sys::borrow(fd))?;
    let mut room = [0; libc::PATH_MAX as usize];
    let mut whole = [0; libc::PATH_MAX as usize];
    let path = sys::name_of(fd, &mut room).and_then(|path| sys::copied(path, &mut whole));
    let mut base = [0; NAME_MAX + 1];
    let here = path.and_then(|path| parent(libc::AT_FDCWD, path, &mut base));
    match here.filter(|(here, _)| here.directory == captured.directory) {
        Some((here, _)) => {
            let turn = here.engine.enter_directory(here.who, here.directory, &here);
            let is_over = turn.settle(&captured, (stat.dev, stat.ino));
            turn.finish();
            if is_over { Ok(()) } else { Err(Errno::IO) }
        }
        // Its name is gone, or nobody knows where it is: with the directory's next destage it is over.
        None if stat.links == 0 => Ok(()),
        None => Err(Errno::IO),
    }
}

/// Everything is about to be on the disk, by a call that names no file: what the log has of files as a whole must not come back
/// over that.
pub fn settle_all() {
    let Some(engine) = engine() else { return };
    for slot in engine.slots().filter(|slot| slot.state().has(Flag::DIRECTORY) && slot.has_live_content()) {
        // Where nobody answers they stay, as they were when they were synced one by one.
        let _ = DAEMON.sync_file(slot.file());
    }
}
