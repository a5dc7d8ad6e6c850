//! write, copy_file_range, lseek: what goes through the stages.
//!
//! The rule: a write of a managed file is the engine's, with the real write as its publish; any other change of its
//! content makes it leave the log first; and an fsync is the kernel's own unless the engine absorbs it. What is not
//! managed is the backing file system's, its fsyncs too. Around all of it `crate::cached` tells the block cache what
//! changes.

use std::os::fd::{AsFd, BorrowedFd};

use fuser::FileHandle;
use rustix::fs::{Mode, OFlags, SeekFrom};
use seawall_cache::front::change::Span;
use seawall_core::client::Use;
use seawall_core::{At, Errno, Scope};

use super::Fs;
use crate::class::Class;
use crate::handle::Handle;
use crate::node::Node;
use crate::rights::Changer;
use crate::settle;

/// What comes with a write.
#[derive(Clone, Copy)]
pub struct How {
    /// A caller that may not keep set-user-id and set-group-id bits of what it changes.
    pub strip: Option<Changer>,
    /// By which way it came.
    pub way: Way,
}

/// What a write has to do with the kernel's cached pages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It is one, at the kernel's leisure: nobody waits for it to be durable, or to be seen.
    Page,
    /// The kernel sees to them, and syncs the write with another request.
    Usual,
    /// Past them, as we wanted it: the kernel leaves them, and the sync, to us.
    Past {
        /// What is to be synced after it.
        syncs: Option<Scope>,
    },
}

impl Way {
    /// By the flags of a request: in its own words, and those of open(2).
    pub fn of(is_writeback: bool, is_past: bool, flags: OFlags) -> Self {
        match (is_writeback, is_past) {
            (true, _) => Self::Page,
            (_, true) => Self::Past { syncs: super::open::scope(flags) },
            _ => Self::Usual,
        }
    }
}

/// Which thread carries a request out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Thread {
    /// One of those that read requests: it waits for nobody who may be stopped.
    Reader,
    /// One that may wait.
    Worker,
}

impl Fs {
    /// A write, and the sync behind it if the descriptor asks for one, if neither need wait for the daemon or the disk.
    pub fn write_quickly(
        &self,
        handle: &Handle,
        offset: u64,
        data: &[u8],
        how: How,
    ) -> Option<Result<usize, Errno>> {
        if how.strip.is_some() && handle.node.is_privileged() {
            return None;
        }
        let class = settle::quick(&handle.node, &self.log, &self.nodes)?;
        let write = || self.write_as(&class, handle, offset, data, Thread::Reader);
        let Way::Past { syncs } = how.way else { return write() };
        let absorbed = syncs.is_none_or(|scope| self.absorbs(&class, scope));
        if !absorbed || handle.node.pages.may_be_there() {
            return None;
        }
        let done = write()?.and_then(|done| {
            syncs.map_or(Ok(()), |scope| self.sync_as(&class, handle, scope)).map(|()| done)
        });
        // If it was read meanwhile it is written again, elsewhere: before it has an answer, whoever else writes there has no
        // say in which comes last.
        (!handle.node.pages.may_be_there()).then_some(done)
    }

    /// A write, and the sync behind it if the descriptor asks for one. To be answered by
    /// [`when_seen`](Self::when_seen).
    ///
    /// # Errors
    /// What the backing file system says, or the disk.
    pub fn write(&self, handle: &Handle, offset: u64, data: &[u8], how: How) -> Result<usize, Errno> {
        let class = settle::find_out(&handle.node, &self.log, &self.nodes, Use::Change);
        let done =
            self.write_as(&class, handle, offset, data, Thread::Worker).unwrap_or(Err(Errno::AGAIN))?;
        drop(class);
        if let Way::Past { syncs: Some(scope) } = how.way {
            self.sync(handle, scope)?;
        }
        how.strip.map_or(Ok(()), |who| self.strip_privileges(&handle.node, who))?;
        Ok(done)
    }

    /// Runs `then`, once no page of the kernel's holds what was there before a write of these bytes.
    pub fn when_seen(
        &self,
        handle: &Handle,
        span: (u64, usize),
        how: How,
        then: impl FnOnce() + Send + 'static,
    ) {
        if matches!(how.way, Way::Past { .. }) && handle.node.pages.may_be_there() {
            self.pages.drop_then(&handle.node, span, then);
        } else {
            then();
        }
    }

    /// `None`: it would wait for the end of a freeze, on a thread that must not.
    fn write_as(
        &self,
        class: &Class,
        handle: &Handle,
        offset: u64,
        data: &[u8],
        by: Thread,
    ) -> Option<Result<usize, Errno>> {
        let publish = || match handle.direct {
            true => write_whole(handle.fd.as_fd(), data, offset),
            false => rustix::io::pwrite(&handle.fd, data, offset),
        };
        let write = || {
            let engine = &self.log.engine;
            let Some(managed) = class.managed() else { return Some(self.unlogged(&handle.node, publish)) };
            let begun = engine.begin(self.log.me(), managed.file, handle.fd.as_fd());
            if by == Thread::Reader && begun.must_wait() {
                return None;
            }
            let logged = begun.log_write(At::Offset(offset), std::iter::once(data));
            if engine.gave_up() {
                errln!(
                    "seawall: the log stays full: data files leave it, and their pages can tear until they are back"
                );
            }
            Some(logged.and_then(|change| {
                let done = publish();
                change.finish(done == Ok(data.len()));
                done
            }))
        };
        let span = Span::Bytes { from: offset, len: data.len() as u64 };
        self.log.changing(&handle.node, span, write)
    }

    /// A change of a file that is not managed.
    pub(super) fn unlogged<R>(&self, node: &Node, op: impl FnOnce() -> R) -> R {
        let done = op();
        // Another process may have registered it meanwhile.
        if let Some(file) = self.log.engine.find(node.dev, node.ino) {
            self.log.engine.disturb(file);
        }
        done
    }

    /// Takes set-user-id and set-group-id bits away that somebody's change does not leave.
    pub(super) fn strip_privileges(&self, node: &Node, who: Changer) -> Result<(), Errno> {
        if !node.is_privileged() {
            return Ok(());
        }
        let stat = node.stat()?;
        let gone = who.takes(&stat);
        if gone != 0 {
            let mode = Mode::from_raw_mode(stat.st_mode & 0o7777 & !gone);
            self.disturbing(node, || rustix::fs::chmod(node.proc_path(), mode))?;
            node.stat()?;
        }
        Ok(())
    }

    /// copy_file_range(2).
    ///
    /// # Errors
    /// What the backing file system says.
    pub fn copy(
        &self,
        from: (&Handle, u64),
        to: (&Handle, u64),
        len: u64,
        who: Changer,
    ) -> Result<usize, Errno> {
        // The kernel takes a number of 32 bits back.
        let len = len.min(1 << 30) as usize;
        let (mut at, mut into) = (from.1, to.1);
        let span = Span::Bytes { from: into, len: len as u64 };
        let copied = self.around_the_log(&to.0.node, span, || {
            rustix::fs::copy_file_range(&from.0.fd, Some(&mut at), &to.0.fd, Some(&mut into), len)
        })?;
        self.strip_privileges(&to.0.node, who)?;
        Ok(copied)
    }

    /// A change of content that has no record: a managed file leaves the log first.
    pub(super) fn around_the_log<R>(&self, node: &Node, span: Span, op: impl FnOnce() -> R) -> R {
        let class = settle::find_out(node, &self.log, &self.nodes, Use::Change);
        self.log.changing(node, span, || match class.managed() {
            None => self.unlogged(node, op),
            Some(managed) => self.pass(managed, op),
        })
    }

    /// lseek(2) with SEEK_DATA or SEEK_HOLE.
    ///
    /// # Errors
    /// What the backing file system says.
    pub fn seek(&self, handle: &Handle, offset: i64, whence: i32) -> Result<i64, Errno> {
        const SEEK_DATA: i32 = 3;
        const SEEK_HOLE: i32 = 4;
        let from = u64::try_from(offset).map_err(|_| Errno::NXIO)?;
        let whence = match whence {
            SEEK_DATA => SeekFrom::Data(from),
            SEEK_HOLE => SeekFrom::Hole(from),
            _ => return Err(Errno::INVAL),
        };
        rustix::fs::seek(&handle.fd, whence).map(|at| at as i64)
    }

    /// The open file with this number.
    ///
    /// # Errors
    /// EBADF.
    pub fn handle(&self, number: FileHandle) -> Result<std::sync::Arc<Handle>, Errno> {
        self.handles.get(number)
    }
}

/// All of it, or an error: what is answered in part the kernel would go on with in the wrong place if io_uring asked for it
/// (`super::open`).
fn write_whole(fd: BorrowedFd<'_>, data: &[u8], offset: u64) -> Result<usize, Errno> {
    let mut written = 0;
    while written < data.len() {
        match rustix::io::pwrite(fd, &data[written..], offset + written as u64)? {
            0 => return Err(Errno::NOSPC),
            n => written += n,
        }
    }
    Ok(written)
}
