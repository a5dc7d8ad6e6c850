//! getattr, setattr, extended attributes, statfs.
//!
//! Sizes are changed in the log, in order with the writes. Everything else about a file logged data cannot stand
//! for: its next fsync is real. Permissions were the kernel's to check (`default_permissions`), with ACLs.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use fuser::{FileHandle, INodeNo, TimeOrNow};
use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, Stat, StatVfs, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid,
    XattrFlags, chmodat, chownat, open, utimensat,
};
use seawall_core::{Errno, certain};

use super::Fs;
use crate::attr::timespec;
use crate::node::Node;
use crate::rights::Changer;

/// Longest value of an extended attribute (XATTR_SIZE_MAX), and longest list.
const XATTR_MAX: usize = 64 << 10;

/// What setattr is asked to change.
#[derive(Debug)]
pub struct Change {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Size.
    pub size: Option<u64>,
    /// Time of access.
    pub atime: Option<TimeOrNow>,
    /// Time of change.
    pub mtime: Option<TimeOrNow>,
    /// The descriptor by which it was asked for.
    pub handle: Option<FileHandle>,
    /// The caller that asked for it.
    pub who: Changer,
}

impl Fs {
    /// stat(2).
    ///
    /// # Errors
    /// What the backing file system says, for this and the following.
    pub fn attributes(&self, number: INodeNo) -> Result<Stat, Errno> {
        self.nodes.get(number)?.stat()
    }

    /// chmod(2), chown(2), truncate(2), utimensat(2).
    pub fn change(&self, number: INodeNo, change: &Change) -> Result<Stat, Errno> {
        let node = self.nodes.get(number)?;
        if let Some(size) = change.size {
            let handle = change.handle.and_then(|number| self.handles.get(number).ok());
            self.truncate(&node, handle.as_deref(), size)?;
            self.strip_privileges(&node, change.who)?;
        }
        let others = change.mode.is_some()
            || change.uid.is_some()
            || change.gid.is_some()
            || change.atime.is_some()
            || change.mtime.is_some();
        if others {
            node.changes.run(|| self.owned_by(&node, change.uid, || rest(&node, change)))?;
        }
        node.stat()
    }

    /// A change of attributes, with the owner that the file is to have. One that is given to somebody else leaves
    /// the log for good.
    fn owned_by(
        &self,
        node: &Node,
        uid: Option<u32>,
        op: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let file = self.log.engine.find(node.dev, node.ino);
        match (file, uid) {
            (Some(file), Some(uid)) if node.stat()?.st_uid != uid => {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let fd = open(node.proc_path(), flags, Mode::empty())?;
                let sync = || certain::fdatasync(fd.as_fd());
                let out = self.log.engine.take_out(self.log.me(), file, sync);
                let done = op();
                match done {
                    Ok(()) => out.given_away(),
                    Err(_) => out.finish(sync),
                }
                done
            }
            _ => self.disturbing(node, op),
        }
    }

    /// getxattr(2).
    pub fn get_attribute(&self, number: INodeNo, name: &OsStr) -> Result<Vec<u8>, Errno> {
        let node = self.nodes.get(number)?;
        let mut value = vec![0; 256];
        match rustix::fs::getxattr(node.proc_path(), name, &mut value[..]) {
            Err(Errno::RANGE) => {
                value.resize(XATTR_MAX, 0);
                let len = rustix::fs::getxattr(node.proc_path(), name, &mut value[..])?;
                value.truncate(len);
            }
            len => value.truncate(len?),
        }
        Ok(value)
    }

    /// listxattr(2).
    pub fn list_attributes(&self, number: INodeNo) -> Result<Vec<u8>, Errno> {
        let node = self.nodes.get(number)?;
        let mut names = vec![0; XATTR_MAX];
        let len = rustix::fs::listxattr(node.proc_path(), &mut names[..])?;
        names.truncate(len);
        Ok(names)
    }

    /// setxattr(2).
    pub fn set_attribute(
        &self,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
    ) -> Result<(), Errno> {
        let node = self.nodes.get(number)?;
        let flags = XattrFlags::from_bits_retain(flags as u32);
        self.disturbing(&node, || rustix::fs::setxattr(node.proc_path(), name, value, flags))
    }

    /// removexattr(2).
    pub fn remove_attribute(&self, number: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let node = self.nodes.get(number)?;
        self.disturbing(&node, || rustix::fs::removexattr(node.proc_path(), name))
    }

    /// readlink(2).
    pub fn read_link(&self, number: INodeNo) -> Result<Vec<u8>, Errno> {
        let node = self.nodes.get(number)?;
        rustix::fs::readlinkat(node.fd(), c"", Vec::new()).map(std::ffi::CString::into_bytes)
    }

    /// statvfs(2).
    pub fn space(&self) -> Result<StatVfs, Errno> {
        // An O_PATH descriptor will do.
        rustix::fs::fstatvfs(self.nodes.root().fd().as_fd())
    }
}

/// Everything but the size. The owner first: a change of owner takes set-user-id bits away.
fn rest(node: &Node, change: &Change) -> Result<(), Errno> {
    if change.uid.is_some() || change.gid.is_some() {
        let (uid, gid) = (change.uid.map(Uid::from_raw), change.gid.map(Gid::from_raw));
        chownat(node.fd(), c"", uid, gid, AtFlags::EMPTY_PATH)?;
    }
    if let Some(mode) = change.mode {
        chmodat(CWD, node.proc_path(), Mode::from_raw_mode(mode & 0o7777), AtFlags::empty())?;
    }
    if change.atime.is_some() || change.mtime.is_some() {
        let times = Timestamps { last_access: time(change.atime), last_modification: time(change.mtime) };
        utimensat(node.fd(), c"", &times, AtFlags::EMPTY_PATH)?;
    }
    Ok(())
}

fn time(wanted: Option<TimeOrNow>) -> Timespec {
    match wanted {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(TimeOrNow::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(TimeOrNow::SpecificTime(time)) => timespec(time),
    }
}
