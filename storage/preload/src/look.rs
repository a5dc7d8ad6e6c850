//! What is this path? Looked at by stat or O_PATH only: opening and closing a managed file inside the
//! application would drop the process's POSIX locks on it.

use core::ffi::{CStr, c_int};

use seawall_core::client::Use;
use seawall_core::policy;
use seawall_core::{Engine, Errno, FileRef, Out, Owner};

use crate::classify::{self, Intent, Kind, find};
use crate::sys::{self, Stat};
use crate::{client, owner, session};

/// User and group as for chown(2).
pub type Owners = (libc::uid_t, libc::gid_t);

/// A path that leads to a managed file.
pub struct Seen {
    /// The log.
    pub engine: &'static Engine,
    /// The calling thread.
    pub who: Owner,
    /// The file.
    pub file: FileRef,
    /// What stat said.
    pub stat: Stat,
}

/// The managed file at `path`; `flags` as for fstatat(2).
pub fn at(dir: c_int, path: &CStr, flags: c_int) -> Option<Seen> {
    if session::is_off() {
        return None;
    }
    let stat = sys::fstatat(dir, path, flags).ok().filter(|stat| stat.regular)?;
    let engine = session::engine()?;
    let file = find(engine, &stat)?;
    Some(Seen { engine, who: owner::current(engine)?, file, stat })
}

/// The managed file behind `fd`.
pub fn behind(fd: c_int) -> Option<Seen> {
    let Kind::Managed(target) = classify::look_up_or_register(fd, Intent::Write) else { return None };
    let stat = sys::fstat(fd).ok()?;
    Some(Seen { engine: target.engine, who: target.who, file: target.file, stat })
}

impl Seen {
    /// A change of the file by its name: out of the log, then `op`.
    pub fn pass<R>(&self, op: impl FnOnce() -> R) -> R {
        let out = self.take_out();
        let done = op();
        out.finish(|| client::sync_file(self.file));
        done
    }

    fn take_out(&self) -> Out<'_> {
        self.engine.take_out(self.who, self.file, || client::sync_file(self.file))
    }

    /// The removal of this name by `op`. If it is the last one all the file's records are retired first, unless the log says that
    /// the file is gone: `op` calls what it gets with that, before the file is.
    pub fn unlink(&self, op: impl FnOnce(&dyn Fn(bool)) -> Result<(), Errno>) -> Result<(), Errno> {
        if self.stat.links > 1 {
            return self.disturb(|| op(&|_| {}));
        }
        self.engine.removing(self.who, self.file, || client::sync_file(self.file), op)
    }

    /// A rename.
    pub fn renamed<R>(&self, op: impl FnOnce() -> R) -> R {
        self.engine.renaming(self.file, op)
    }

    /// A change of links or attributes.
    pub fn disturb<R>(&self, op: impl FnOnce() -> R) -> R {
        self.engine.touching(self.file, op)
    }

    /// A change of the owner: if it is another one, the file leaves the log for good. To those that it has, which is what
    /// SQLite does as root whenever it opens its rollback journal, it is none.
    pub fn own(&self, (uid, gid): Owners, op: impl FnOnce() -> c_int) -> c_int {
        if self.stat.is_owned_already(uid, gid) {
            return op();
        }
        if !self.stat.is_given_away_to(uid) {
            return self.disturb(op);
        }
        let out = self.take_out();
        let done = op();
        match done {
            0 => out.given_away(),
            _ => out.finish(|| client::sync_file(self.file)),
        }
        done
    }

    /// Keeps the file out of the log until released.
    pub fn hold(&self) {
        self.engine.hold(self.who, self.file, || client::sync_file(self.file));
    }
}

/// True if a file at `path` is managed, or would be from its first write when it is opened so: flags may be taken off.
pub fn will_be_managed(dir: c_int, path: &CStr, open_flags: c_int) -> bool {
    let flags = libc::O_PATH | libc::O_CLOEXEC | open_flags & libc::O_NOFOLLOW;
    let Some(engine) = session::engine() else { return false };
    let fd = match sys::openat(dir, path, flags, 0) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => {
            return open_flags & libc::O_CREAT != 0 && new_is_for_now(engine, dir, path, open_flags);
        }
        Err(_) => return false,
    };
    let managed = sys::fstat(fd).is_ok_and(|stat| {
        stat.regular
            && (find(engine, &stat).is_some() || stat.links > 0 && open_is_for_now(engine, fd, open_flags))
    });
    sys::close(fd);
    managed
}

/// The same of a file that the open is about to create, by the directory it will lie in. A dangling symbolic
/// link is misjudged; the open finds that out by its descriptor.
fn new_is_for_now(engine: &Engine, dir: c_int, path: &CStr, open_flags: c_int) -> bool {
    let Some((fd, base)) = sys::parent_of(dir, path) else { return false };
    let mut room = [0; libc::PATH_MAX as usize];
    let length = sys::name_of(fd, &mut room).map(<[u8]>::len);
    sys::close(fd);
    let end =
        length.map(|length| length + 1 + base.len()).filter(|end| !base.is_empty() && *end <= room.len());
    let (Some(length), Some(end)) = (length, end) else { return false };
    room[length] = b'/';
    room[length + 1..end].copy_from_slice(base);
    is_for_now(engine, &room[..end], open_flags)
}

fn open_is_for_now(engine: &Engine, fd: c_int, open_flags: c_int) -> bool {
    let mut room = [0; libc::PATH_MAX as usize];
    sys::name_of(fd, &mut room).is_some_and(|path| is_for_now(engine, path, open_flags))
}

fn is_for_now(engine: &Engine, path: &[u8], open_flags: c_int) -> bool {
    let syncs_writes = open_flags & (libc::O_DSYNC | libc::O_SYNC) != 0;
    let at = if syncs_writes { Use::SyncedWrites } else { Use::Change };
    policy::decide(engine.shm(), path).is_some_and(|(_, manage)| manage.due(at, 0, || false).is_now)
}
