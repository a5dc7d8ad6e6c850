//! FUSE's words for the operations: requests in, replies out, and which of them may wait.
//!
//! Nothing is decided here but three things: what the kernel may do by itself ([`negotiation`]), what runs on the thread
//! that read the request and what on another (`seawall_daemon::workers`), and how the kernel hears of an error ([`replies`]).

mod negotiation;
mod replies;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, FileHandle, Filesystem, INodeNo, KernelConfig, LockOwner, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty,
    ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::OFlags;
use seawall_core::Scope;

use crate::caller::Caller;
use crate::fs::{Change, Fs, How, Way};
use crate::passing;
use crate::rights::Changer;
pub use negotiation::LONGEST_WRITE;
use replies::{attributes, bytes, created, empty, entry, list, list_plus, told, written, xattr};

/// The file system as fuser sees it.
pub struct Adapter(pub Arc<Fs>);

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn with_buffer<R>(size: usize, use_it: impl FnOnce(&mut [u8]) -> R) -> R {
    BUFFER.with_borrow_mut(|buffer| {
        if buffer.len() < size {
            buffer.resize(size, 0);
        }
        use_it(&mut buffer[..size])
    })
}

fn caller(request: &Request, umask: u32) -> Caller {
    Caller { uid: request.uid(), gid: request.gid(), umask: umask & 0o777 }
}

fn scope(data_only: bool) -> Scope {
    if data_only { Scope::Data } else { Scope::Whole }
}

impl Adapter {
    /// Runs an operation on names: here, or, should it have to wait, on another thread. `is_slow`: it may wait for the
    /// disk.
    fn on_names<const N: usize, R: Send + 'static>(
        &self,
        names: [&OsStr; N],
        reply: R,
        is_slow: impl FnOnce(&Fs, [&OsStr; N]) -> bool,
        op: impl FnOnce(&Fs, [&OsStr; N], R) + Send + 'static,
    ) {
        if let Some(_still) = self.0.nodes.guards.try_still(&names)
            && !is_slow(&self.0, names)
        {
            return op(&self.0, names, reply);
        }
        let (fs, names) = (Arc::clone(&self.0), names.map(OsStr::to_owned));
        self.0.workers.run(move || {
            let names = names.each_ref().map(|name| name.as_os_str());
            let _still = fs.nodes.guards.still(&names);
            op(&fs, names, reply);
        });
    }
}

fn never<const N: usize>(_: &Fs, _: [&OsStr; N]) -> bool {
    false
}

fn on_a_log<const N: usize>(fs: &Fs, _: [&OsStr; N]) -> bool {
    fs.names_may_wait()
}

impl Filesystem for Adapter {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        negotiation::negotiate(&self.0, config)
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.on_names([name], reply, never, move |fs, [name], reply| entry(reply, fs.look_up(parent, name)));
    }

    fn forget(&self, _: &Request, node: INodeNo, times: u64) {
        self.0.nodes.forget(node, times);
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        attributes(reply, node, self.0.attributes(node));
    }

    fn setattr(
        &self,
        request: &Request,
        node: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let who = Changer::of(request);
        let change = Change { mode, uid, gid, size, atime, mtime, handle, who };
        let fs = Arc::clone(&self.0);
        let work = move || attributes(reply, node, fs.change(node, &change));
        if size.is_some() { self.0.workers.run(work) } else { work() }
    }

    fn readlink(&self, _: &Request, node: INodeNo, reply: ReplyData) {
        match self.0.read_link(node) {
            Ok(target) => reply.data(&target),
            Err(e) => reply.error(told(e)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let who = caller(request, umask);
        self.on_names([name], reply, on_a_log, move |fs, [name], reply| {
            entry(reply, fs.make_node(parent, name, mode, device, who));
        });
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let who = caller(request, umask);
        self.on_names([name], reply, on_a_log, move |fs, [name], reply| {
            entry(reply, fs.make_directory(parent, name, mode, who));
        });
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let is_slow = |fs: &Fs, [name]: [&OsStr; 1]| fs.names_may_wait() || fs.removal_is_slow(parent, name);
        self.on_names([name], reply, is_slow, move |fs, [name], reply| empty(reply, fs.remove(parent, name)));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.on_names([name], reply, on_a_log, move |fs, [name], reply| {
            empty(reply, fs.remove_directory(parent, name));
        });
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let (who, target) = (caller(request, 0), target.to_owned());
        self.on_names([name], reply, on_a_log, move |fs, [name], reply| {
            entry(reply, fs.make_link(parent, name, target.as_os_str(), who));
        });
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let is_slow =
            |fs: &Fs, [_, new]: [&OsStr; 2]| fs.names_may_wait() || fs.removal_is_slow(new_parent, new);
        self.on_names([name, new_name], reply, is_slow, move |fs, [old, new], reply| {
            empty(reply, fs.rename((parent, old), (new_parent, new), flags.bits()));
        });
    }

    fn link(&self, _: &Request, node: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.on_names([name], reply, on_a_log, move |fs, [name], reply| {
            entry(reply, fs.link(node, parent, name))
        });
    }

    fn open(&self, _: &Request, node: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.0.open(node, flags.0) {
            Err(e) => reply.error(told(e)),
            Ok(opened) => passing::opened(reply, &opened),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let who = caller(request, umask);
        self.on_names([name], reply, on_a_log, move |fs, [name], reply| {
            created(fs.create(parent, name, mode, flags, who), reply);
        });
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        past: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let handle = match self.0.handle(handle) {
            Ok(handle) => handle,
            Err(e) => return reply.error(told(e)),
        };
        if past.is_none() {
            handle.node.pages.may_fill();
        }
        let size = size as usize;
        // Should it have to wait, another thread does the rest.
        let left = with_buffer(size, |into| match self.0.read_quickly(&handle, offset, into) {
            Ok(done) => {
                bytes(reply, into, done);
                None
            }
            Err(left) => Some((reply, left)),
        });
        if let Some((reply, left)) = left {
            let fs = Arc::clone(&self.0);
            self.0.workers.run(move || {
                let (read, done) = fs.read_rest(&handle, offset, size, left);
                bytes(reply, &read, done);
            });
        }
    }

    fn write(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        how: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let handle = match self.0.handle(handle) {
            Ok(handle) => handle,
            Err(e) => return reply.error(told(e)),
        };
        let is_writeback = how.contains(WriteFlags::FUSE_WRITE_CACHE);
        let flags = OFlags::from_bits_retain(flags.0 as u32);
        let how = How {
            strip: how
                .contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID)
                .then(|| Changer::unprivileged(request.pid(), request.uid(), request.gid())),
            way: Way::of(is_writeback, handle.direct, flags),
        };
        if let Some(done) = self.0.write_quickly(&handle, offset, data, how) {
            return written(reply, done);
        }
        let (fs, data) = (Arc::clone(&self.0), data.to_vec());
        self.0.workers.run(move || {
            let done = fs.write(&handle, offset, &data, how);
            fs.when_seen(&handle, (offset, data.len()), how, move || written(reply, done));
        });
    }

    /// close(2): nothing to do, and nothing becomes durable. Not asked again.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.error(fuser::Errno::ENOSYS);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.0.release(handle);
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, data_only: bool, reply: ReplyEmpty) {
        let handle = match self.0.handle(handle) {
            Ok(handle) => handle,
            Err(e) => return reply.error(told(e)),
        };
        let scope = scope(data_only);
        if let Some(done) = self.0.sync_quickly(&handle, scope) {
            return empty(reply, done);
        }
        let fs = Arc::clone(&self.0);
        self.0.workers.run(move || empty(reply, fs.sync(&handle, scope)));
    }

    fn opendir(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.0.open_directory(node) {
            Ok(handle) => reply.opened(handle, fuser::FopenFlags::empty()),
            Err(e) => reply.error(told(e)),
        }
    }

    fn readdir(&self, _: &Request, _: INodeNo, handle: FileHandle, offset: u64, reply: ReplyDirectory) {
        self.on_names([], reply, never, move |fs, [], reply| list(fs, handle, offset, reply));
    }

    fn readdirplus(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        self.on_names([], reply, never, move |fs, [], reply| list_plus(fs, handle, offset, reply));
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.0.close_directory(handle);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        let fs = Arc::clone(&self.0);
        self.0.workers.run(move || empty(reply, fs.sync_directory(handle)));
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match self.0.space() {
            Ok(s) => reply.statfs(
                s.f_blocks,
                s.f_bfree,
                s.f_bavail,
                s.f_files,
                s.f_ffree,
                s.f_bsize as u32,
                s.f_namemax as u32,
                s.f_frsize as u32,
            ),
            Err(e) => reply.error(told(e)),
        }
    }

    fn setxattr(
        &self,
        _: &Request,
        node: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        empty(reply, self.0.set_attribute(node, name, value, flags));
    }

    fn getxattr(&self, _: &Request, node: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        xattr(reply, size, self.0.get_attribute(node, name));
    }

    fn listxattr(&self, _: &Request, node: INodeNo, size: u32, reply: ReplyXattr) {
        xattr(reply, size, self.0.list_attributes(node));
    }

    fn removexattr(&self, _: &Request, node: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.0.remove_attribute(node, name));
    }

    fn fallocate(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let (fs, who) = (Arc::clone(&self.0), Changer::of(request));
        self.0.workers.run(move || {
            let done = fs.handle(handle).and_then(|handle| fs.allocate(&handle, mode, offset, len, who));
            empty(reply, done);
        });
    }

    fn lseek(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        match self.0.handle(handle).and_then(|handle| self.0.seek(&handle, offset, whence)) {
            Ok(at) => reply.offset(at),
            Err(e) => reply.error(told(e)),
        }
    }

    fn copy_file_range(
        &self,
        request: &Request,
        _: INodeNo,
        from: FileHandle,
        from_offset: u64,
        _: INodeNo,
        to: FileHandle,
        to_offset: u64,
        len: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let (fs, who) = (Arc::clone(&self.0), Changer::of(request));
        self.0.workers.run(move || {
            let handles = fs.handle(from).and_then(|from| Ok((from, fs.handle(to)?)));
            let done =
                handles.and_then(|(from, to)| fs.copy((&from, from_offset), (&to, to_offset), len, who));
            written(reply, done);
        });
    }
}
