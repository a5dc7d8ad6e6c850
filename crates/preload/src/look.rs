//! What is this path? Looked at by stat or O_PATH only: opening and closing a managed file inside the
//! application would drop the process's POSIX locks on it.

use core::ffi::{CStr, c_int};

use seawall_core::policy::{self, Manage};
use seawall_core::{Engine, Errno, FileRef, Owner};

use crate::classify::find;
use crate::sys::{self, Stat};
use crate::{client, owner, session};

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

impl Seen {
    /// A change of the file by its name: out of the log, then `op`.
    pub fn pass<R>(&self, op: impl FnOnce() -> R) -> R {
        self.engine.pass(self.who, self.file, || client::sync_file(self.file), op)
    }

    /// The removal of this name: `op`, with all the file's records retired first if it is the last one.
    pub fn unlink(&self, op: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        if self.stat.links > 1 {
            return self.need_sync(op);
        }
        self.engine.unlink(self.who, self.file, || client::sync_file(self.file), op)
    }

    /// A change of names or attributes: the next fsync is real, from before it until after it.
    pub fn need_sync<R>(&self, op: impl FnOnce() -> R) -> R {
        self.engine.need_sync(self.file);
        let result = op();
        self.engine.need_sync(self.file);
        result
    }

    /// Keeps the file out of the log until released.
    pub fn hold(&self) {
        self.engine.hold(self.who, self.file, || client::sync_file(self.file));
    }
}

/// True if a file at `path` is managed, or would be from its first write: flags may be taken off.
pub fn will_be_managed(dir: c_int, path: &CStr, open_flags: c_int) -> bool {
    let flags = libc::O_PATH | libc::O_CLOEXEC | open_flags & libc::O_NOFOLLOW;
    let Some(engine) = session::engine() else { return false };
    let Ok(fd) = sys::openat(dir, path, flags, 0) else { return false };
    let managed = sys::fstat(fd).is_ok_and(|stat| {
        stat.regular && (find(engine, &stat).is_some() || stat.links > 0 && is_for_now(engine, fd))
    });
    sys::close(fd);
    managed
}

fn is_for_now(engine: &Engine, fd: c_int) -> bool {
    let mut room = [0; libc::PATH_MAX as usize];
    let path = sys::name_of(fd, &mut room);
    path.and_then(|path| policy::decide(engine.shm(), path)).is_some_and(|(_, m)| m == Manage::Now)
}
