//! A directory in the log, as a call reaches it.

use core::ffi::{CStr, c_int};

use seawall_core::file::{Flag, Stand};
use seawall_core::format::{Attributes, Handle, NAME_MAX, NAMED_HANDLE_MAX};
use seawall_core::naming::{self, Directory, Holds, Kind, Known};
use seawall_core::policy::Manage;
use seawall_core::stand_in::NOTE;
use seawall_core::{Engine, Errno, FileRef, Owner, Place, certain, directory, policy};
use seawall_wire::shm::Preset;

use super::content::content_at;

use crate::client::DAEMON;
use crate::sys::{self, Stat, entries, unsafe_call};
use crate::{owner, session};

/// A directory in the log, and the part of a path that is in it.
pub(super) struct Here {
    pub(super) engine: &'static Engine,
    pub(super) who: Owner,
    pub(super) directory: FileRef,
    pub(super) fd: c_int,
    /// It is this call's own, by O_PATH.
    pub(super) is_own: bool,
    pub(super) inode: (u64, u64),
    pub(super) uid: u32,
    /// Whose it is.
    pub(super) preset: Preset,
    /// When it was found.
    pub(super) changed: u64,
    /// How its changes stood then.
    pub(super) stand: Option<Stand>,
}

impl Drop for Here {
    fn drop(&mut self) {
        if self.is_own {
            sys::close(self.fd);
        }
    }
}

/// Calls `op` with a descriptor of the directory behind `fd` that can be synced.
pub(super) fn with_open(fd: c_int, op: impl FnOnce(c_int) -> Result<(), Errno>) -> Result<(), Errno> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    let open = sys::openat(fd, c".", flags, 0)?;
    let done = op(open);
    sys::close(open);
    done
}

impl Place for Here {
    fn changed_before(&self) -> u64 {
        self.changed
    }

    fn changed(&self) -> u64 {
        directory::changed(sys::borrow(self.fd))
    }

    fn sync(&self, with_files: bool) -> Result<(), Errno> {
        with_open(self.fd, |fd| match with_files {
            true => unsafe_call!(SYS_syncfs, fd).map(drop),
            false => unsafe_call!(SYS_fsync, fd).map(drop),
        })
    }

    fn check(&self) -> Result<(), Errno> {
        with_open(self.fd, |fd| certain::check(sys::borrow(fd)))
    }
}

impl Directory for Here {
    fn engine(&self) -> &Engine {
        self.engine
    }

    fn who(&self) -> Owner {
        self.who
    }

    fn reference(&self) -> FileRef {
        self.directory
    }

    fn inode(&self) -> (u64, u64) {
        self.inode
    }

    fn uid(&self) -> u32 {
        self.uid
    }

    fn keeps(&self, name: &CStr) -> bool {
        policy::keeps_name(self.preset, name.to_bytes())
    }

    fn stand(&self) -> Option<Stand> {
        self.stand
    }

    fn at(&self, name: &CStr) -> Option<Known> {
        let stat = sys::fstatat(self.fd, name, libc::AT_SYMLINK_NOFOLLOW).ok()?;
        let kind = match () {
            () if stat.regular => Kind::File,
            () if stat.directory => Kind::Directory,
            () if stat.symlink => Kind::Symlink,
            () => Kind::Other,
        };
        let handle = if kind == Kind::Other { None } else { handle(self.fd, name, 0) };
        let (inode, links, attributes) = ((stat.dev, stat.ino), stat.links, attributes(&stat));
        Some(Known { kind, inode, links, attributes, handle })
    }

    fn itself(&self, name: &CStr) -> Option<Self> {
        itself(self.engine, self.fd, name)
    }

    fn holds(&self) -> Holds {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let Ok(open) = sys::openat(self.fd, c".", flags, 0) else { return Holds::More };
        let mut holds = Holds::Nothing;
        let is_more = entries::any_entry(open, |name| {
            if name == c"." || name == c".." {
                return false;
            }
            // The guards of databases in it are lowered when the kernel has refused.
            holds = Holds::Guards;
            name.to_bytes() != NOTE.as_bytes()
        });
        sys::close(open);
        if is_more { Holds::More } else { holds }
    }

    fn is_within(&self, inode: (u64, u64)) -> bool {
        naming::lies_within(sys::borrow(self.fd), inode)
    }

    fn clear(&self) {
        // What stays is in the way of its removal, which reports it.
        let _ = with_open(self.fd, |open| {
            let _ = DAEMON.lower_left(sys::borrow(open));
            Ok(())
        });
    }

    fn with_target<R>(&self, name: &CStr, op: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let mut room = [0; libc::PATH_MAX as usize];
        let len = unsafe_call!(SYS_readlinkat, self.fd, name.as_ptr(), room.as_mut_ptr(), room.len()).ok()?;
        room.get(..len).filter(|target| target.len() < room.len()).map(op)
    }

    fn with_content<R>(&self, name: &CStr, known: &Known, op: impl FnOnce(&[u8]) -> R) -> Option<R> {
        content_at(self.fd, name, known.inode, op)
    }
}

/// The log, if a directory is in it.
#[inline]
pub fn engine() -> Option<&'static Engine> {
    session::joined().filter(|engine| engine.has_directories())
}

/// The same for a process that is about to change a name, or to sync: it joins the log by that, if it has not before. Many do
/// nothing else (mkdir, mv, sync), and what they change would be unseen.
#[inline]
pub fn joining() -> Option<&'static Engine> {
    session::engine().filter(|engine| engine.has_directories())
}

/// True if the call may make a name in a directory that is in the log.
#[inline]
pub fn may_make(flags: c_int) -> bool {
    flags & libc::O_CREAT != 0 && joining().is_some()
}

/// The directory that a path's last part is in, if it is in the log, and that part.
pub(super) fn parent<'p>(
    dir: c_int,
    path: &CStr,
    room: &'p mut [u8; NAME_MAX + 1],
) -> Option<(Here, &'p CStr)> {
    let engine = engine()?;
    let (fd, base) = sys::parent_of(dir, path)?;
    let here = here(engine, fd, true)?;
    let name = terminated(base, room)?;
    (!name.is_empty()).then_some((here, name))
}

/// A name as calls take it.
fn terminated<'p>(name: &[u8], room: &'p mut [u8; NAME_MAX + 1]) -> Option<&'p CStr> {
    room.get_mut(..name.len())?.copy_from_slice(name);
    *room.get_mut(name.len())? = 0;
    CStr::from_bytes_until_nul(room).ok()
}

/// The directory behind `fd`, if it is in the log. Closes `fd` if it is the call's own and is not.
pub(super) fn here(engine: &'static Engine, fd: c_int, is_own: bool) -> Option<Here> {
    let found = sys::fstat(fd).ok().and_then(|stat| found(engine, fd, is_own, &stat));
    if found.is_none() && is_own {
        sys::close(fd);
    }
    found
}

/// The directory at this path, if it is in the log. Links are not followed.
pub(super) fn itself(engine: &'static Engine, dir: c_int, path: &CStr) -> Option<Here> {
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    here(engine, sys::openat(dir, path, flags, 0).ok()?, true)
}

/// The same of one that was looked at.
pub(super) fn found(engine: &'static Engine, fd: c_int, is_own: bool, stat: &Stat) -> Option<Here> {
    let directory = engine.find(stat.dev, stat.ino)?;
    let who = engine.state(directory).has(Flag::DIRECTORY).then(|| owner::current(engine)).flatten()?;
    let preset = engine.preset_of(directory)?;
    let (inode, uid, changed) = ((stat.dev, stat.ino), stat.uid, stat.changed);
    let stand = engine.stand(directory);
    Some(Here { engine, who, directory, fd, is_own, inode, uid, preset, changed, stand })
}

/// Which directories the log knows, for [`outside`]: asked before one is looked for.
pub(super) fn known() -> u32 {
    session::engine().map_or(0, Engine::directories)
}

/// Runs a call that changes names at these paths, not all of which are in a directory that was in the log a moment ago. `takes`:
/// it may take names away, or give one to a file that was there. `known`: from before the look.
pub(super) fn outside<R, const N: usize>(
    known: u32,
    paths: [(c_int, &CStr); N],
    takes: bool,
    call: impl FnOnce() -> R,
) -> R {
    let Some(engine) = session::joined() else { return call() };
    let shrinking = paths.iter().filter(|_| takes).filter_map(|(dir, path)| above(*dir, path));
    engine.outside(owner::current(engine), known, shrinking, || entered(paths), call)
}

#[cold]
fn entered<const N: usize>(paths: [(c_int, &CStr); N]) {
    for (dir, path) in paths {
        let mut room = [0; NAME_MAX + 1];
        if let Some((here, _)) = parent(dir, path, &mut room) {
            naming::leaving(&here);
        }
    }
}

/// The inode of the directory that a path's last part is in.
fn above(dir: c_int, path: &CStr) -> Option<(u64, u64)> {
    let (fd, _) = sys::parent_of(dir, path)?;
    let stat = sys::fstat(fd);
    sys::close(fd);
    stat.ok().map(|stat| (stat.dev, stat.ino))
}

/// A directory was made at this path, in one that the log does not know: if that was made lately itself, so was this one.
pub(super) fn made_below(dir: c_int, path: &CStr) {
    let Some(engine) = engine() else { return };
    let Some((fd, base)) = sys::parent_of(dir, path) else { return };
    let is_made = sys::fstat(fd).is_ok_and(|stat| engine.was_made((stat.dev, stat.ino)));
    let mut room = [0; NAME_MAX + 1];
    if is_made && let Some(name) = terminated(base, &mut room) {
        let made = sys::fstatat(fd, name, libc::AT_SYMLINK_NOFOLLOW).ok().filter(|stat| stat.directory);
        if let Some((stat, handle)) = made.zip(handle(fd, name, 0)) {
            engine.directory_is_made((stat.dev, stat.ino), &handle, &attributes(&stat));
        }
    }
    sys::close(fd);
}

/// The handle of the file at a name, or behind a descriptor (an empty name, AT_EMPTY_PATH).
pub(super) fn handle(fd: c_int, name: &CStr, flags: c_int) -> Option<Handle> {
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

/// Where the file behind `fd` is, if it has no records of its own at its first sync.
pub(super) fn path_of_any<'r>(
    engine: &Engine,
    fd: c_int,
    room: &'r mut [u8; libc::PATH_MAX as usize],
) -> Option<&'r CStr> {
    let mut link = [0; libc::PATH_MAX as usize];
    let path = sys::name_of(fd, &mut link)?;
    let (root, manage) = policy::decide(engine.shm(), path)?;
    let is_whole = || {
        let preset = engine.shm().root(root).and_then(|root| root.kind());
        preset.is_some_and(|preset| policy::is_kept_whole(preset, &path[sys::base_at(path)..]))
    };
    match manage {
        Manage::Again => sys::copied(path, room),
        Manage::Bypass if is_whole() => sys::copied(path, room),
        _ => None,
    }
}

pub(super) fn attributes(stat: &Stat) -> Attributes {
    Attributes { mode: stat.mode & 0o7777, uid: stat.uid, gid: stat.gid, modified: stat.modified }
}
