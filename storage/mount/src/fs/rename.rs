//! rename: a file, a directory, or two names that change places.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering::Relaxed;

use fuser::INodeNo;
use rustix::fs::{FileType, RenameFlags, Stat, renameat_with};
use seawall_core::Errno;
use seawall_core::naming::{self, Directory, How};

use super::Fs;
use super::names::stat_at;
use crate::named;
use crate::names::{Act, at_real, real};
use crate::node::Node;
use crate::settle;

impl Fs {
    /// rename(2), renameat2(2).
    ///
    /// # Errors
    /// What the backing file system says.
    pub fn rename(&self, from: (INodeNo, &OsStr), to: (INodeNo, &OsStr), flags: u32) -> Result<(), Errno> {
        let (old_dir, new_dir) = (self.nodes.get(from.0)?, self.nodes.get(to.0)?);
        let outside = [&old_dir, &new_dir].map(|dir| named::before_change(&self.log, dir));
        let flags = RenameFlags::from_bits_retain(flags);
        self.raise_ahead((&old_dir, from.1), (&new_dir, to.1));
        if flags.contains(RenameFlags::EXCHANGE) {
            self.raise_ahead((&new_dir, to.1), (&old_dir, from.1));
        }
        let names = [(old_dir.fd(), from.1), (new_dir.fd(), to.1)];
        at_real(self.log.guards(), names, |[old, new], act| {
            self.rename_at((&old_dir, old), (&new_dir, new), (flags, act))
        })?;
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
        (flags, act): (RenameFlags, Act<'_>),
    ) -> Result<(), Errno> {
        let (source, victim) = (self.managed_at(old_dir, old), self.managed_at(new_dir, new));
        let seen = stat_at(old_dir, old);
        let replaced = || stat_at(new_dir, new).filter(|_| !flags.contains(RenameFlags::EXCHANGE));
        let call = |retire: &dyn Fn(bool)| {
            let rename = || self.moving((old_dir, old, seen.as_ref()), (new_dir, new), (flags, act), retire);
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
        (flags, act): (RenameFlags, Act<'_>),
        retire: &dyn Fn(bool),
    ) -> Result<(), Errno> {
        let call = |is_gone| {
            retire(is_gone);
            act.by(|| renameat_with(old_dir.fd(), old, new_dir.fd(), new, flags))
        };
        let how = match flags {
            flags if flags.is_empty() || flags == RenameFlags::NOREPLACE => How::Plain,
            flags if flags == RenameFlags::EXCHANGE => How::Exchange,
            _ => How::Other,
        };
        let known = self.log.engine.directories();
        let Some((name, to_name)) = named::text(old).zip(named::text(new)) else { return call(false) };
        match (named::here(&self.log, old_dir.fd()), named::here(&self.log, new_dir.fd())) {
            (Some(from), Some(to)) if from.is(&to) => {
                let source = from.at(&name);
                naming::moving_within(&from, ((&name, source), &to_name), how, call)
            }
            (Some(from), Some(to)) => naming::moving_across((&from, &name), (&to, &to_name), how, call),
            (from, to) => {
                let is_directory = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
                let rename = || {
                    // No record says where they are.
                    if how != How::Plain || seen.is_none_or(is_directory) {
                        named::leaving(&self.log, new_dir.fd(), new);
                        named::leaving(&self.log, old_dir.fd(), old);
                    }
                    match from.or(to) {
                        Some(here) => naming::other(&here, || call(false)),
                        None => call(false),
                    }
                };
                named::outside(&self.log, known, [old_dir.fd(), new_dir.fd()], true, rename)
            }
        }
    }

    /// Before a managed file gets another name its guard is there. So it comes before the look where the names lead.
    fn raise_ahead(&self, from: (&Node, &OsStr), (dir, name): (&Node, &OsStr)) {
        let stat = stat_at(from.0, &real(from.0.fd(), from.1));
        if let Some(file) = stat.and_then(|stat| self.log.engine.find(stat.st_dev, stat.st_ino)) {
            self.log.daemon.renaming(file, dir.fd(), name.as_bytes());
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
}
