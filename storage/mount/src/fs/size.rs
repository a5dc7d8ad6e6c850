//! truncate and fallocate: changes of a file's size, in the log in order with the writes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FallocateFlags, OFlags};
use seawall_cache::front::change::Span;
use seawall_core::client::Use;
use seawall_core::{Change, Errno};

use super::Fs;
use crate::class::Class;
use crate::handle::Handle;
use crate::named;
use crate::node::Node;
use crate::rights::Changer;
use crate::settle;

impl Fs {
    /// truncate(2), ftruncate(2): in the log, in order with the writes.
    ///
    /// # Errors
    /// What the backing file system says.
    pub fn truncate(&self, node: &Node, handle: Option<&Handle>, size: u64) -> Result<(), Errno> {
        let class = settle::find_out(node, &self.log, &self.nodes, Use::Change);
        let opened: OwnedFd;
        let fd = match handle.filter(|handle| handle.writable) {
            Some(handle) => handle.fd.as_fd(),
            None => {
                opened = node.open(OFlags::WRONLY)?;
                opened.as_fd()
            }
        };
        let publish = || rustix::fs::ftruncate(fd, size);
        self.log.changing(node, Span::Any, || match class.managed() {
            None => self.unlogged(node, || self.resizing(node, &class, fd, publish)),
            Some(managed) => {
                let begun = self.log.engine.begin(self.log.me(), managed.file, fd);
                self.resized(node, &class, fd, begun.log_truncate(size)?, publish)
            }
        })
    }

    /// fallocate(2), in every mode that the backing file system has: what it adds to the size is logged, a change of
    /// content leaves the log first.
    ///
    /// # Errors
    /// What it says.
    pub fn allocate(
        &self,
        handle: &Handle,
        mode: i32,
        offset: u64,
        len: u64,
        who: Changer,
    ) -> Result<(), Errno> {
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        self.allocated(handle, mode, offset, len)?;
        self.strip_privileges(&handle.node, who)
    }

    fn allocated(&self, handle: &Handle, mode: FallocateFlags, offset: u64, len: u64) -> Result<(), Errno> {
        let call = || rustix::fs::fallocate(&handle.fd, mode, offset, len);
        let grows = mode.is_empty();
        if !grows && mode != FallocateFlags::KEEP_SIZE {
            return self.around_the_log(&handle.node, Span::Any, call);
        }
        let (node, fd) = (&handle.node, handle.fd.as_fd());
        let class = settle::find_out(node, &self.log, &self.nodes, Use::Change);
        // No content changes, but the size and the times.
        node.changes.run(|| match (class.managed(), offset.checked_add(len)) {
            (Some(managed), Some(end)) => {
                let end = if grows { end } else { 0 };
                let begun = self.log.engine.begin(self.log.me(), managed.file, fd);
                self.resized(node, &class, fd, begun.log_allocate(end)?, call)
            }
            _ => self.unlogged(node, || self.resizing(node, &class, fd, call)),
        })
    }

    /// Makes a change of the size of a managed file.
    fn resized(
        &self,
        node: &Node,
        class: &Class,
        fd: BorrowedFd<'_>,
        change: Change<'_>,
        publish: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let done = if change.is_logged() { publish() } else { self.resizing(node, class, fd, publish) };
        change.finish(done.is_ok());
        done
    }

    /// Makes a change of the size that has no record.
    fn resizing(
        &self,
        node: &Node,
        class: &Class,
        fd: BorrowedFd<'_>,
        publish: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        if class.was_never_synced() { publish() } else { named::resizing(&self.log, node, fd, publish) }
    }
}
