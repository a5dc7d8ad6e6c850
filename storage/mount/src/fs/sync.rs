//! fsync, fdatasync: absorbed by the log, or the kernel's own.

use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use seawall_core::client::Use;
use seawall_core::{Errno, Scope, Syncing, certain};

use super::Fs;
use crate::class::{Class, Managed};
use crate::handle::Handle;
use crate::named;
use crate::settle;

impl Fs {
    /// An fsync that is absorbed: it costs no system call and waits for nobody. `None` for any other.
    pub fn sync_quickly(&self, handle: &Handle, scope: Scope) -> Option<Result<(), Errno>> {
        let class = settle::quick(&handle.node, &self.log, &self.nodes)?;
        self.absorbs(&class, scope).then(|| self.sync_as(&class, handle, scope))
    }

    /// True if a sync waits for nobody. On a log on a disk it does.
    pub(super) fn absorbs(&self, class: &Class, scope: Scope) -> bool {
        let engine = &self.log.engine;
        let managed = class.managed().filter(|_| engine.pool().journal().is_none());
        managed.is_some_and(|managed| engine.absorbs(managed.file, scope))
    }

    /// fsync(2), fdatasync(2): absorbed, or real.
    ///
    /// # Errors
    /// What the disk says.
    pub fn sync(&self, handle: &Handle, scope: Scope) -> Result<(), Errno> {
        let class = settle::find_out(&handle.node, &self.log, &self.nodes, Use::Sync);
        self.sync_as(&class, handle, scope)
    }

    pub(super) fn sync_as(&self, class: &Class, handle: &Handle, scope: Scope) -> Result<(), Errno> {
        let fd = handle.fd.as_fd();
        let real = |scope| {
            self.log.syncing(&handle.node, || match scope {
                Scope::Data => rustix::fs::fdatasync(fd),
                Scope::Whole => rustix::fs::fsync(fd),
            })
        };
        let Some(Managed { file, .. }) = class.managed() else {
            if class.is_synced_first() && named::first_sync(&self.log, &handle.node, fd) {
                return Ok(());
            }
            return real(scope).and_then(|()| named::settle(&self.log, &handle.node));
        };
        let certain = |scope| real(scope).and_then(|()| certain::check(fd));
        let name = || match handle.node.name() {
            Some(path) => self.log.engine.sync_directory(*file, fd, path.as_os_str().as_bytes()),
            None => Ok(false),
        };
        let mut sync = self.log.engine.sync(self.log.me(), *file, scope);
        loop {
            sync = match sync {
                Syncing::Done(done) => return done,
                Syncing::Name(due) => due.synced(name()),
                Syncing::Real(due) => {
                    let done = certain(due.scope());
                    due.synced(done)
                }
            }
        }
    }
}
