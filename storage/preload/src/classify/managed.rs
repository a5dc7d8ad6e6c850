//! What is done with a managed file.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use seawall_core::certain;
use seawall_core::file::Flag;
use seawall_core::{Errno, Scope, Syncing};

use super::{HELD_FOR_LIFE, Target};
use crate::client::DAEMON;
use crate::fdtable::{self, mark};
use crate::sys;
use crate::{cached, named};

impl Target {
    /// True if the descriptor was opened for writing; if not, the kernel refuses.
    #[inline]
    pub fn writable(&self) -> bool {
        self.entry.has(mark::WRITABLE)
    }

    /// True if the log has everything that the disk may lack of it.
    pub fn is_tracked(&self) -> bool {
        self.engine.state(self.file).has(Flag::TRACKED)
    }

    /// An fsync or fdatasync: absorbed, or real; for certain, as it retires records or lets the log stand for the
    /// file.
    #[inline]
    pub fn sync(&self, fd: c_int, scope: Scope) -> Result<(), Errno> {
        let mut sync = self.engine.sync(self.who, self.file, scope);
        loop {
            sync = match sync {
                Syncing::Done(done) => return done,
                Syncing::Name(due) => due.synced(self.sync_name(fd)),
                Syncing::Real(due) => {
                    let done = Self::sync_certainly(fd, due.scope());
                    due.synced(done)
                }
            }
        }
    }

    #[cold]
    fn sync_certainly(fd: c_int, scope: Scope) -> Result<(), Errno> {
        cached::sync(fd, || sys::sync(fd, scope).and_then(|()| certain::check(sys::borrow(fd))))
    }

    /// The name alone.
    #[cold]
    fn sync_name(&self, fd: c_int) -> Result<bool, Errno> {
        let mut room = [0; libc::PATH_MAX as usize];
        let Some(path) = sys::name_of(fd, &mut room) else { return Ok(false) };
        match named::sync_parent(path) {
            Some(done) => done.map(|()| true),
            None => self.engine.sync_directory(self.file, sys::borrow(fd), path),
        }
    }

    /// Any other change of the file: out of the log, then `op`.
    pub fn pass<R>(&self, fd: c_int, op: impl FnOnce() -> R) -> R {
        let sync = || certain::fdatasync(sys::borrow(fd));
        let out = self.engine.take_out(self.who, self.file, sync);
        let done = op();
        out.finish(sync);
        done
    }

    /// Keeps the file out of the log until the process ends.
    pub fn hold_for_life(&self, fd: c_int) {
        if self.writable() && !fdtable::get(fd).has(mark::HELD) {
            if self.engine.state(self.file).has(Flag::ATOMIC) {
                DAEMON.tell_torn(
                    self.engine,
                    "a data file is written in ways the log does not see, so its pages can tear",
                );
            }
            self.hold(fd);
            HELD_FOR_LIFE.store(true, Relaxed);
            fdtable::set(fd, self.entry.with(mark::HELD, true));
        }
    }

    /// Keeps the file out of the log until released.
    pub fn hold(&self, fd: c_int) {
        self.engine.hold(self.who, self.file, || certain::fdatasync(sys::borrow(fd)));
    }
}
