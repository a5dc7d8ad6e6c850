//! The disk as a FUSE file system: one directory, one file in it, and that file is the disk.
//!
//! The file is opened with direct I/O, so the kernel keeps no second copy of it: after a cut nobody can
//! read what the disk has lost. It cannot be resized, punched or mapped; a loop device needs none of that.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request as Caller, WriteFlags,
};

use super::power::{Answer, LONGEST_WRITE, Request, Shared};
use crate::cache::Cache;

/// The file's name.
pub const NAME: &str = "disk";
const FILE: INodeNo = INodeNo(2);
/// Neither name nor size ever changes.
const TTL: Duration = Duration::from_secs(3600);

/// The file system.
pub struct DiskFs(pub Arc<Shared>);

macro_rules! refusable {
    ($($reply:ty),*) => {$(
        impl Answer for $reply {
            fn refuse(self) {
                self.error(Errno::EIO);
            }
        }
    )*};
}

refusable!(ReplyData, ReplyWrite, ReplyEmpty);

impl DiskFs {
    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match inode {
            INodeNo::ROOT => (FileType::Directory, 0o700, 0),
            FILE => (FileType::RegularFile, 0o600, self.0.size()),
            _ => return None,
        };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
}

impl Filesystem for DiskFs {
    fn init(&mut self, _: &Caller, config: &mut KernelConfig) -> io::Result<()> {
        let refused = |_| io::Error::other("the kernel's FUSE does not take the size of writes");
        config.set_max_write(LONGEST_WRITE).map(drop).map_err(refused)
    }

    fn lookup(&self, _: &Caller, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(FILE).filter(|_| parent == INodeNo::ROOT && name == NAME) {
            Some(attributes) => reply.entry(&TTL, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Caller, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&TTL, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Caller, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if inode == FILE && self.0.opened() {
            reply.opened(FileHandle(1), FopenFlags::FOPEN_DIRECT_IO);
        } else {
            reply.error(Errno::EIO);
        }
    }

    fn release(
        &self,
        _: &Caller,
        _: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.0.released();
        reply.ok();
    }

    /// Close: nothing to do, and nothing becomes durable.
    fn flush(&self, _: &Caller, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn read(
        &self,
        _: &Caller,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = self.0.serve(Request::Read, reply, |cache| cache.read(offset, size as usize));
        if let Some((bytes, reply)) = read {
            reply.data(&bytes);
        }
    }

    fn write(
        &self,
        _: &Caller,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if let Some(reply) = self.0.serve_write(reply, offset, data) {
            reply.written(data.len() as u32);
        }
    }

    /// What a loop device makes of a flush (REQ_PREFLUSH, FUA).
    fn fsync(&self, _: &Caller, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let time = self.0.flush_time();
        if !time.is_zero() {
            std::thread::sleep(time);
        }
        if let Some(((), reply)) = self.0.serve(Request::Flush, reply, Cache::flush) {
            reply.ok();
        }
    }

    fn readdir(&self, _: &Caller, _: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, NAME),
        ];
        for (index, (inode, kind, name)) in entries.into_iter().enumerate().skip(offset as usize) {
            if reply.add(inode, index as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
