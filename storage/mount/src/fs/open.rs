//! open, create, release.
//!
//! One way for all descriptors of an inode that write, at a time:
//!
//! | way | for |
//! |---|---|
//! | past us, to the backing file | a file that no preset wants |
//! | past the kernel's cache, to us | a database's log whose first descriptor writes with O_DSYNC or O_SYNC |
//! | through the kernel's cache, to us | any other, and all descriptors of such a log that only read |
//!
//! They only read through the cache because the kernel errs with io_uring past it (seen on Linux 6.18): a request that was
//! done in part goes on at its own beginning, not behind that part, for FOPEN_DIRECT_IO leaves the request's position where
//! it was. So a read that meets the file's end gets the first bytes again in the place of nothing, and says that it is whole.
//!
//! Through its cache the kernel sends a write with O_DSYNC as two requests, the second an fsync; past it as one, after
//! which the sync is left to us. What a read finds in the cache is then another matter: [`crate::pages`].

use std::ffi::{CStr, OsStr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use fuser::{FileHandle, FopenFlags, INodeNo};
use rustix::fs::{FileType, Mode, OFlags, Stat, openat};
use seawall_cache::front::sequential::Stream;
use seawall_cache::front::word::Word;
use seawall_core::naming::{self, Making};
use seawall_core::policy::Manage;
use seawall_core::{Errno, Scope};
use seawall_media::locks::lock;

use super::Fs;
use crate::caller::Caller;
use crate::class::Class;
use crate::handle::Handle;
use crate::named::{self, Here};
use crate::names;
use crate::node::{Node, Opens};
use crate::passing::{Opened, Passed};
use crate::seen::{Found, Seen};
use crate::settle;

impl Fs {
    /// open(2). May wait for the daemon if the file may have to be registered: it is not, here.
    ///
    /// # Errors
    /// What the backing file system says.
    pub fn open(&self, number: INodeNo, flags: i32) -> Result<Opened, Errno> {
        let node = self.nodes.get(number)?;
        let flags = OFlags::from_bits_retain(flags as u32);
        let fd = node.open(flags & OFlags::ACCMODE)?;
        self.opened(node, fd, flags)
    }

    /// open(2) of a file that is not there yet.
    ///
    /// # Errors
    /// What the backing file system says.
    pub fn create(
        &self,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        flags: i32,
        caller: Caller,
    ) -> Result<(Stat, INodeNo, Opened), Errno> {
        let parent = self.nodes.get(parent)?;
        let flags = OFlags::from_bits_retain(flags as u32);
        let wanted = flags & (OFlags::ACCMODE | OFlags::EXCL);
        let always = OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        let mode = Mode::from_raw_mode(mode & 0o7777);
        let open = |name: &OsStr, how: Making| {
            let is_there = how == Making::Opens && !wanted.contains(OFlags::EXCL);
            let makes = if is_there { always - OFlags::CREATE } else { always };
            openat(parent.fd(), name, wanted | makes, mode)
        };
        let fd = names::at_real(self.log.guards(), [(parent.fd(), name)], |[name], act| {
            let call = |how: Making| caller.act(|| act.by(|| open(name, how)));
            let logged = |here: &Here<'_>, name: &CStr, _: &dyn Fn() -> Result<OwnedFd, Errno>| {
                naming::making(here, name, call)
            };
            named::at(&self.log, parent.fd(), name, logged, || call(Making::Other))
        })?;
        let path = rustix::fs::open(proc_path(&fd), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let (node, stat) = self.nodes.meet(path)?;
        let number = node.number;
        Ok((stat, number, self.opened(node, fd, flags)?))
    }

    fn opened(&self, node: Arc<Node>, fd: OwnedFd, flags: OFlags) -> Result<Opened, Errno> {
        let mut opens = lock(&node.opens);
        let is_open = opens.count > 0;
        let found = Seen::open(&mut opens.seen, is_open, &node.changes, &fd)?;
        let writable = flags & OFlags::ACCMODE != OFlags::RDONLY;
        if !is_open {
            let syncs = writable && scope(flags).is_some();
            self.opened_first(&node, &mut opens, syncs);
        }
        let direct = opens.direct && writable;
        let passes = !opens.direct && self.passes(&node, &opens);
        let id = passes.then(|| self.share(&mut opens, &fd)).flatten();
        let keeps = match found {
            Found::First | Found::Same => true,
            // Before anybody else can have it open, and write it.
            Found::ChangedWhileClosed => self.pages.drop_closed(node.number),
            Found::Changed => false,
        };
        let cache = if direct {
            FopenFlags::FOPEN_DIRECT_IO
        } else if id.is_none() && keeps {
            FopenFlags::FOPEN_KEEP_CACHE
        } else {
            FopenFlags::empty()
        };
        opens.count += 1;
        drop(opens);
        if matches!(found, Found::First | Found::Changed) {
            self.pages.forget_attributes(node.number);
        }
        let handle = self.handles.add(Handle {
            node,
            fd,
            writable,
            direct,
            reading: Default::default(),
            stream: Stream::new(),
        });
        Ok(Opened { handle, flags: cache | FopenFlags::FOPEN_NOFLUSH, backing: id })
    }

    /// The first descriptor of an inode decides by which way all that write go. `syncs`: it syncs what it writes.
    fn opened_first(&self, node: &Node, opens: &mut Opens, syncs: bool) {
        settle::reopened(node);
        node.remember(Word::UNKNOWN);
        opens.direct = syncs && self.goes_past_the_cache(node);
        if opens.direct {
            node.pages.none();
        }
    }

    /// True if a file that is written with O_DSYNC is to be written past the kernel's cache: a log, which is hardly read. Not
    /// under policy `atomic`: there the kernel would cut a long write at pages of the caller's memory.
    fn goes_past_the_cache(&self, node: &Node) -> bool {
        let is_log = |path: &Path| self.log.decide(path) == Manage::Now && !self.log.is_atomic(path);
        self.direct.load(Relaxed)
            && node.kind == FileType::RegularFile
            && node.name().is_some_and(|path| is_log(&path))
    }

    /// True if the kernel may go past us. Under the lock of `opens`, which a registration asks too. With a block cache it never
    /// may: its writes would be announced to nobody.
    fn passes(&self, node: &Node, opens: &Opens) -> bool {
        if opens.passthrough.is_some() {
            return true;
        }
        let possible = self.passthrough.load(Relaxed)
            && self.log.cache.is_none()
            && node.kind == FileType::RegularFile
            && opens.count == 0;
        possible && self.is_the_kernels(node)
    }

    /// True for a file that no preset wants. The daemon is asked only about databases that are new.
    fn is_the_kernels(&self, node: &Node) -> bool {
        if self.log.engine.find(node.dev, node.ino).is_some() {
            return false;
        }
        if let Some(class) = settle::quick(node, &self.log, &self.nodes) {
            return matches!(*class, Class::Kernel { .. });
        }
        node.name().is_none_or(|path| self.log.decide(&path) == Manage::Bypass)
    }

    /// One number for all descriptors of an inode: the kernel answers EIO to a second one.
    fn share(&self, opens: &mut Opens, fd: &OwnedFd) -> Option<Arc<Passed>> {
        if opens.passthrough.is_none() {
            opens.passthrough = Passed::new(self.device.get()?, fd).ok().map(Arc::new);
        }
        opens.passthrough.clone()
    }

    /// close(2) of the last descriptor of an open file.
    pub fn release(&self, handle: FileHandle) {
        let Some(handle) = self.handles.remove(handle) else { return };
        let mut opens = lock(&handle.node.opens);
        opens.count = opens.count.saturating_sub(1);
        if opens.count == 0 {
            opens.passthrough = None;
            opens.direct = false;
        }
    }
}

/// What these flags want synced after each write.
pub(super) fn scope(flags: OFlags) -> Option<Scope> {
    // O_SYNC has the bit of O_DSYNC, and one of its own. (rustix takes both for O_SYNC.)
    const O_DSYNC: u32 = 0o10000;
    if flags.contains(OFlags::SYNC) {
        Some(Scope::Whole)
    } else {
        (flags.bits() & O_DSYNC != 0).then_some(Scope::Data)
    }
}

fn proc_path(fd: &OwnedFd) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}
