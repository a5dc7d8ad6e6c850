//! lookup, and everything that makes or removes a name; what moves one is `rename`.
//!
//! A file whose name changes gets a real fsync next; one that loses its last name leaves the log first, as with the
//! preload. Names that a guard has taken lead to the true file (`crate::names`).

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, OwnedFd};

use fuser::INodeNo;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, linkat, mkdirat, mknodat, openat, statat, symlinkat, unlinkat,
};
use seawall_core::{Errno, FileRef, certain, naming};

use super::Fs;
use crate::attr::decode_device;
use crate::caller::Caller;
use crate::named::{self, Here};
use crate::names::{Act, at_real, look_at_real, real};
use crate::node::Node;
use crate::settle;

/// How a call that makes something is logged.
type Logged = fn(&Here<'_>, &CStr, &dyn Fn() -> Result<(), Errno>) -> Result<(), Errno>;

/// A managed file, found by a name.
pub(super) struct Found {
    pub(super) file: FileRef,
    fd: OwnedFd,
    stat: Stat,
}

impl Fs {
    /// A name is looked up.
    ///
    /// # Errors
    /// What the backing file system says.
    pub fn look_up(&self, parent: INodeNo, name: &OsStr) -> Result<(Stat, INodeNo), Errno> {
        let parent = self.nodes.get(parent)?;
        if crate::names::is_hidden(parent.fd(), name) {
            return Err(Errno::NOENT);
        }
        self.found(&parent, name)
    }

    fn found(&self, parent: &Node, name: &OsStr) -> Result<(Stat, INodeNo), Errno> {
        look_at_real(self.log.guards(), (parent.fd(), name), |name| self.nodes.look_up(parent, name))
            .map(|(node, stat)| (stat, node.number))
    }

    /// Makes something with a name, and tells what it is.
    fn make(
        &self,
        parent: INodeNo,
        name: &OsStr,
        caller: Caller,
        how: Logged,
        make: impl Fn(&Node, &OsStr) -> Result<(), Errno>,
    ) -> Result<(Stat, INodeNo), Errno> {
        let parent = self.nodes.get(parent)?;
        at_real(self.log.guards(), [(parent.fd(), name)], |[name], act| {
            let call = || caller.act(|| act.by(|| make(&parent, name)));
            named::at(&self.log, parent.fd(), name, how, call)
        })?;
        named::made_below(&self.log, parent.fd(), name);
        self.found(&parent, name)
    }

    /// mkdir(2).
    ///
    /// # Errors
    /// What the backing file system says, for this and the following.
    pub fn make_directory(
        &self,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        caller: Caller,
    ) -> Result<(Stat, INodeNo), Errno> {
        let mode = Mode::from_raw_mode(mode & 0o7777);
        let logged: Logged = |here, name, call| naming::making_new(here, name, call);
        self.make(parent, name, caller, logged, |parent, name| mkdirat(parent.fd(), name, mode))
    }

    /// mknod(2).
    pub fn make_node(
        &self,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        device: u32,
        caller: Caller,
    ) -> Result<(Stat, INodeNo), Errno> {
        let (kind, bits) = (FileType::from_raw_mode(mode), Mode::from_raw_mode(mode & 0o7777));
        let make =
            |parent: &Node, name: &OsStr| mknodat(parent.fd(), name, kind, bits, decode_device(device));
        // The kernel makes a regular file so for whoever asks for one by mknod.
        let logged: Logged = |here, name, call| naming::making(here, name, |_| call());
        self.make(parent, name, caller, logged, make)
    }

    /// symlink(2).
    pub fn make_link(
        &self,
        parent: INodeNo,
        name: &OsStr,
        target: &OsStr,
        caller: Caller,
    ) -> Result<(Stat, INodeNo), Errno> {
        let logged: Logged = |here, name, call| naming::making_new(here, name, call);
        self.make(parent, name, caller, logged, |parent, name| symlinkat(target, parent.fd(), name))
    }

    /// link(2): may the file be managed, its next fsync is real.
    pub fn link(&self, node: INodeNo, parent: INodeNo, name: &OsStr) -> Result<(Stat, INodeNo), Errno> {
        let (node, parent) = (self.nodes.get(node)?, self.nodes.get(parent)?);
        let link = |[name]: [&OsStr; 1], act: Act<'_>| {
            let link = || linkat(CWD, node.proc_path(), parent.fd(), name, AtFlags::SYMLINK_FOLLOW).map(drop);
            let call = || act.by(link);
            self.linking(&node, (&parent, name), call)
        };
        self.disturbing(&node, || at_real(self.log.guards(), [(parent.fd(), name)], link))?;
        settle::renamed(&node);
        self.found(&parent, name)
    }

    /// rmdir(2).
    pub fn remove_directory(&self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let parent = self.nodes.get(parent)?;
        let remove = |name: &OsStr, act: Act<'_>| {
            let known = self.log.engine.directories();
            let call = || act.by(|| unlinkat(parent.fd(), name, AtFlags::REMOVEDIR));
            match named::here(&self.log, parent.fd()).zip(named::text(name)) {
                Some((here, name)) => naming::removing_directory(&here, &name, call),
                None => named::outside(&self.log, known, [parent.fd()], true, || {
                    named::leaving(&self.log, parent.fd(), name);
                    call()
                }),
            }
        };
        at_real(self.log.guards(), [(parent.fd(), name)], |[name], act| match remove(name, act) {
            // A guard moves, so all of it is done anew.
            Err(Errno::NOTEMPTY) if self.makes_way(&parent, name) => remove(name, act),
            done => done,
        })?;
        named::after_removal(&self.log, &parent);
        Ok(())
    }

    /// True if what stood in the way of a directory was guards of what is gone, and is no more.
    pub(super) fn makes_way(&self, parent: &Node, name: &OsStr) -> bool {
        crate::names::makes_way(parent.fd(), name, |dir| self.log.daemon.lower_left(dir))
    }

    /// unlink(2).
    pub fn remove(&self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let parent = self.nodes.get(parent)?;
        let is_outside = named::before_change(&self.log, &parent);
        at_real(self.log.guards(), [(parent.fd(), name)], |[name], act| {
            let victim = self.managed_at(&parent, name);
            let unlink = || act.by(|| unlinkat(parent.fd(), name, AtFlags::empty()));
            let logged = |retire: &dyn Fn(bool)| {
                let call = |is_gone| {
                    retire(is_gone);
                    unlink()
                };
                let known = self.log.engine.directories();
                match named::here(&self.log, parent.fd()).zip(named::text(name)) {
                    Some((here, name)) => naming::removing(&here, &name, call),
                    None => named::outside(&self.log, known, [parent.fd()], true, || call(false)),
                }
            };
            let remove = || self.without(victim.as_ref(), logged);
            self.log.ending(stat_at(&parent, name).as_ref(), remove)
        })?;
        if is_outside {
            named::after_change(&parent);
        }
        Ok(())
    }

    /// linkat(2) of a node. Within a directory, and between two that are in the log, it is a record.
    fn linking(
        &self,
        node: &Node,
        (parent, name): (&Node, &OsStr),
        call: impl Fn() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let known = self.log.engine.directories();
        if !self.log.engine.has_directories() {
            return named::outside(&self.log, known, [parent.fd()], false, call);
        }
        let place = named::above(node);
        let from =
            place.as_ref().and_then(|(above, old)| Some((named::here(&self.log, above.as_fd())?, old)));
        match (from, named::here(&self.log, parent.fd()).zip(named::text(name))) {
            (Some((from, old)), Some((here, new))) if from.is(&here) => {
                naming::linking_within(&here, (old, &new), call)
            }
            (Some((from, old)), Some((here, new))) => {
                naming::linking_across((&from, old), (&here, &new), call)
            }
            (_, Some((here, _))) => naming::other(&here, call),
            (Some((here, _)), None) => {
                named::outside(&self.log, known, [parent.fd()], true, || naming::beside(&here, call))
            }
            (None, None) => named::outside(&self.log, known, [parent.fd()], true, call),
        }
    }

    /// The managed file called `name`, with a descriptor to sync it by.
    pub(super) fn managed_at(&self, dir: &Node, name: &OsStr) -> Option<Found> {
        let stat = stat_at(dir, name)?;
        let file = self.log.engine.find(stat.st_dev, stat.st_ino)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = openat(dir.fd(), name, flags, Mode::empty());
        let fd = fd.or_else(|_| openat(dir.fd(), name, flags | OFlags::WRONLY, Mode::empty())).ok()?;
        Some(Found { file, fd, stat })
    }

    /// True if any call on names may wait for a disk: for one that takes a name away, which waits for a log on it.
    pub fn names_may_wait(&self) -> bool {
        let engine = &self.log.engine;
        engine.has_directories() && engine.pool().journal().is_some()
    }

    /// True if removing the name would make a managed file leave the log.
    pub fn removal_is_slow(&self, parent: INodeNo, name: &OsStr) -> bool {
        self.nodes.get(parent).is_ok_and(|parent| {
            let name = real(parent.fd(), name);
            statat(parent.fd(), &*name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| self.log.engine.find(stat.st_dev, stat.st_ino).is_some())
        })
    }

    /// The removal of a name by `op`. If it is the last one all the file's records are retired first, unless the log says that
    /// the file is gone: `op` calls what it gets with that, before the file is.
    pub(super) fn without(
        &self,
        victim: Option<&Found>,
        op: impl FnOnce(&dyn Fn(bool)) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        match victim {
            None => op(&|_| {}),
            Some(victim) if victim.stat.st_nlink > 1 => self.log.engine.touching(victim.file, || op(&|_| {})),
            Some(victim) => {
                let sync = || certain::fdatasync(victim.fd.as_fd());
                self.log.engine.removing(self.log.me(), victim.file, sync, op)
            }
        }
    }
}

/// What is called so there, if anything is.
pub(super) fn stat_at(dir: &Node, name: &OsStr) -> Option<Stat> {
    statat(dir.fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok()
}
