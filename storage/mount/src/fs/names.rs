//! lookup, and everything that makes, moves or removes a name.
//!
//! A file whose name changes gets a real fsync next; one that loses its last name leaves the log first, as with the
//! preload. Names that a guard has taken lead to the true file (`crate::names`).

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering::Relaxed;

use fuser::INodeNo;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat, linkat, mkdirat, mknodat, openat, renameat_with,
    statat, symlinkat, unlinkat,
};
use seawall_core::naming::{self, Directory, How};
use seawall_core::{Errno, FileRef, certain};

use super::Fs;
use crate::attr::decode_device;
use crate::caller::Caller;
use crate::named::{self, Here};
use crate::names::{at_real, real};
use crate::node::Node;
use crate::settle;

/// How a call that makes something is logged.
type Logged = fn(&Here<'_>, &CStr, &dyn Fn() -> Result<(), Errno>) -> Result<(), Errno>;

/// A managed file, found by a name.
struct Found {
    file: FileRef,
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
        let look_up = |[name]: [&OsStr; 1]| self.nodes.look_up(parent, name);
        at_real([(parent.fd(), name)], look_up).map(|(node, stat)| (stat, node.number))
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
        at_real([(parent.fd(), name)], |[name]| {
            let call = || caller.act(|| make(&parent, name));
            named::at(&self.log, parent.fd(), name, how, call)
        })?;
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
        let logged: Logged = |here, name, call| naming::making_directory(here, name, call);
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
        let logged: Logged = |here, _, call| naming::other(here, call);
        self.make(parent, name, caller, logged, |parent, name| symlinkat(target, parent.fd(), name))
    }

    /// link(2): may the file be managed, its next fsync is real.
    pub fn link(&self, node: INodeNo, parent: INodeNo, name: &OsStr) -> Result<(Stat, INodeNo), Errno> {
        let (node, parent) = (self.nodes.get(node)?, self.nodes.get(parent)?);
        let link = |[name]: [&OsStr; 1]| {
            let call = || linkat(CWD, node.proc_path(), parent.fd(), name, AtFlags::SYMLINK_FOLLOW).map(drop);
            self.linking(&node, (&parent, name), call)
        };
        self.disturbing(&node, || at_real([(parent.fd(), name)], link))?;
        settle::renamed(&node);
        self.found(&parent, name)
    }

    /// rmdir(2).
    pub fn remove_directory(&self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let parent = self.nodes.get(parent)?;
        let remove = |name: &OsStr| {
            named::leaving(&self.log, parent.fd(), name);
            let call = || unlinkat(parent.fd(), name, AtFlags::REMOVEDIR);
            named::at(&self.log, parent.fd(), name, |here, _, call| naming::other(here, call), call)
        };
        at_real([(parent.fd(), name)], |[name]| match remove(name) {
            Err(Errno::NOTEMPTY) if self.makes_way(&parent, name) => remove(name),
            done => done,
        })?;
        named::after_removal(&self.log, &parent);
        Ok(())
    }

    /// True if what stood in the way of a directory was guards of what is gone, and is no more.
    fn makes_way(&self, parent: &Node, name: &OsStr) -> bool {
        crate::names::makes_way(parent.fd(), name, |dir| self.log.daemon.lower_left(dir))
    }

    /// Before a managed file gets another name its guard is there. So it comes before the look where the names lead.
    fn raise_ahead(&self, from: (&Node, &OsStr), (dir, name): (&Node, &OsStr)) {
        let stat = stat_at(from.0, &real(from.0.fd(), from.1));
        if let Some(file) = stat.and_then(|stat| self.log.engine.find(stat.st_dev, stat.st_ino)) {
            self.log.daemon.renaming(file, dir.fd(), name.as_bytes());
        }
    }

    /// unlink(2).
    pub fn remove(&self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let parent = self.nodes.get(parent)?;
        let is_outside = named::before_change(&self.log, &parent);
        at_real([(parent.fd(), name)], |[name]| {
            let victim = self.managed_at(&parent, name);
            let unlink = || unlinkat(parent.fd(), name, AtFlags::empty());
            let logged = |retire: &dyn Fn(bool)| {
                let call = |is_gone| {
                    retire(is_gone);
                    unlink()
                };
                match named::here(&self.log, parent.fd()).zip(named::text(name)) {
                    Some((here, name)) => naming::removing(&here, &name, call),
                    None => call(false),
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

    /// rename(2), renameat2(2).
    pub fn rename(&self, from: (INodeNo, &OsStr), to: (INodeNo, &OsStr), flags: u32) -> Result<(), Errno> {
        let (old_dir, new_dir) = (self.nodes.get(from.0)?, self.nodes.get(to.0)?);
        let outside = [&old_dir, &new_dir].map(|dir| named::before_change(&self.log, dir));
        let flags = RenameFlags::from_bits_retain(flags);
        self.raise_ahead((&old_dir, from.1), (&new_dir, to.1));
        if flags.contains(RenameFlags::EXCHANGE) {
            self.raise_ahead((&new_dir, to.1), (&old_dir, from.1));
        }
        let names = [(old_dir.fd(), from.1), (new_dir.fd(), to.1)];
        at_real(names, |[old, new]| self.rename_at((&old_dir, old), (&new_dir, new), flags))?;
        for (dir, is_outside) in [&old_dir, &new_dir].into_iter().zip(outside) {
            if is_outside {
                named::after_change(dir);
            }
        }
        Ok(())
    }

    /// The same with the names under which they are found.
    fn rename_at(
        &self,
        (old_dir, old): (&Node, &OsStr),
        (new_dir, new): (&Node, &OsStr),
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        let (source, victim) = (self.managed_at(old_dir, old), self.managed_at(new_dir, new));
        let seen = stat_at(old_dir, old);
        let replaced = || stat_at(new_dir, new).filter(|_| !flags.contains(RenameFlags::EXCHANGE));
        let call = |retire: &dyn Fn(bool)| {
            let rename = || self.moving((old_dir, old, seen.as_ref()), (new_dir, new), flags, retire);
            self.log.ending(replaced().as_ref(), rename)
        };
        let same = source.as_ref().zip(victim.as_ref()).is_some_and(|(a, b)| a.file == b.file);
        let goes = !same && !flags.contains(RenameFlags::EXCHANGE);
        let over = || match &victim {
            Some(victim) if !goes => self.log.engine.renaming(victim.file, || call(&|_| {})),
            victim => self.without(victim.as_ref(), call),
        };
        let rename = || match &source {
            Some(source) => self.log.engine.renaming(source.file, over),
            None => over(),
        };
        match rename() {
            Err(Errno::NOTEMPTY | Errno::EXIST) if flags.is_empty() && self.makes_way(new_dir, new) => {
                rename()
            }
            done => done,
        }?;
        self.moved(seen.as_ref());
        if flags.contains(RenameFlags::EXCHANGE) {
            self.moved(stat_at(old_dir, old).as_ref());
        }
        Ok(())
    }

    /// renameat2(2).
    fn moving(
        &self,
        (old_dir, old, seen): (&Node, &OsStr, Option<&Stat>),
        (new_dir, new): (&Node, &OsStr),
        flags: RenameFlags,
        retire: &dyn Fn(bool),
    ) -> Result<(), Errno> {
        let call = |is_gone| {
            retire(is_gone);
            renameat_with(old_dir.fd(), old, new_dir.fd(), new, flags)
        };
        let how = match flags {
            flags if flags.is_empty() || flags == RenameFlags::NOREPLACE => How::Plain,
            flags if flags == RenameFlags::EXCHANGE => How::Exchange,
            _ => How::Other,
        };
        let is_file = seen.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        if how == How::Exchange || !is_file {
            named::leaving(&self.log, old_dir.fd(), old);
            named::leaving(&self.log, new_dir.fd(), new);
        }
        let (from, to) = (named::here(&self.log, old_dir.fd()), named::here(&self.log, new_dir.fd()));
        let Some((name, to_name)) = named::text(old).zip(named::text(new)) else { return call(false) };
        match (from, to) {
            (Some(from), Some(to)) if from.is(&to) => {
                let source = from.at(&name);
                naming::moving_within(&from, ((&name, source), &to_name), how, call)
            }
            (Some(from), Some(to)) => naming::moving_across((&from, &name), (&to, &to_name), how, call),
            (Some(here), None) | (None, Some(here)) => naming::other(&here, || call(false)),
            (None, None) => call(false),
        }
    }

    /// linkat(2) of a node. Within a directory it is a record.
    fn linking(
        &self,
        node: &Node,
        (parent, name): (&Node, &OsStr),
        call: impl Fn() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        if !self.log.engine.has_directories() {
            return call();
        }
        let place = named::above(node);
        let from =
            place.as_ref().and_then(|(above, old)| Some((named::here(&self.log, above.as_fd())?, old)));
        match (from, named::here(&self.log, parent.fd()).zip(named::text(name))) {
            (Some((from, old)), Some((here, new))) if from.is(&here) => {
                naming::linking_within(&here, (old, &new), call)
            }
            (_, Some((here, _))) => naming::other(&here, call),
            (Some((here, _)), None) => naming::beside(&here, call),
            (None, None) => call(),
        }
    }

    /// What was decided by names is decided anew.
    fn moved(&self, stat: Option<&Stat>) {
        match stat {
            Some(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                if let Some(node) = self.nodes.known(stat.st_ino) {
                    settle::renamed(&node);
                }
            }
            _ => drop(self.nodes.names.fetch_add(1, Relaxed)),
        }
    }

    /// The managed file called `name`, with a descriptor to sync it by.
    fn managed_at(&self, dir: &Node, name: &OsStr) -> Option<Found> {
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
    fn without(
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

fn stat_at(dir: &Node, name: &OsStr) -> Option<Stat> {
    statat(dir.fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok()
}
