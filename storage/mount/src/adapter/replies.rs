//! Replies to the kernel: the outcome of an operation, or its error, in a reply of each kind.

use fuser::{
    FileHandle, Generation, INodeNo, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyWrite, ReplyXattr,
};
use seawall_core::Errno;

use crate::attr::{self, TTL};
use crate::fs::Fs;
use crate::passing::{self, Opened};

const GENERATION: Generation = Generation(0);

pub fn bytes(reply: ReplyData, read: &[u8], done: Result<usize, Errno>) {
    match done {
        Ok(n) => reply.data(&read[..n]),
        Err(e) => reply.error(told(e)),
    }
}

pub fn told(error: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(error.raw_os_error())
}

pub fn written(reply: ReplyWrite, done: Result<usize, Errno>) {
    match done {
        Ok(n) => reply.written(n as u32),
        Err(e) => reply.error(told(e)),
    }
}

pub fn empty(reply: ReplyEmpty, done: Result<(), Errno>) {
    match done {
        Ok(()) => reply.ok(),
        Err(e) => reply.error(told(e)),
    }
}

pub fn entry(reply: ReplyEntry, found: Result<(rustix::fs::Stat, INodeNo), Errno>) {
    match found {
        Ok((stat, number)) => reply.entry(&TTL, &attr::of(&stat, number), GENERATION),
        Err(e) => reply.error(told(e)),
    }
}

pub fn attributes(reply: ReplyAttr, number: INodeNo, found: Result<rustix::fs::Stat, Errno>) {
    match found {
        Ok(stat) => reply.attr(&TTL, &attr::of(&stat, INodeNo(shown(&stat, number)))),
        Err(e) => reply.error(told(e)),
    }
}

/// The root has number 1 for FUSE and keeps its own inode number for programs.
fn shown(stat: &rustix::fs::Stat, number: INodeNo) -> u64 {
    if number == INodeNo::ROOT { stat.st_ino } else { number.0 }
}

pub fn created(made: Result<(rustix::fs::Stat, INodeNo, Opened), Errno>, reply: ReplyCreate) {
    let (stat, number, opened) = match made {
        Ok(made) => made,
        Err(e) => return reply.error(told(e)),
    };
    let attr = attr::of(&stat, number);
    passing::created(reply, &TTL, &attr, GENERATION, &opened);
}

pub fn xattr(reply: ReplyXattr, size: u32, value: Result<Vec<u8>, Errno>) {
    match value {
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(fuser::Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(e) => reply.error(told(e)),
    }
}

pub fn list(fs: &Fs, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
    let done = fs.read_directory(handle, offset, |_, entry| {
        reply.add(INodeNo(entry.ino), entry.next, entry.kind, entry.name)
    });
    match done {
        Ok(()) => reply.ok(),
        Err(e) => reply.error(told(e)),
    }
}

pub fn list_plus(fs: &Fs, handle: FileHandle, offset: u64, mut reply: ReplyDirectoryPlus) {
    let done = fs.read_directory(handle, offset, |dir, entry| {
        if entry.name == "." || entry.name == ".." {
            // Not looked up: the kernel takes no reference on them.
            let mut attr = dir.node.stat().map(|stat| attr::of(&stat, INodeNo(entry.ino)));
            return attr.as_mut().is_ok_and(|attr| {
                reply.add(INodeNo(entry.ino), entry.next, entry.name, &TTL, attr, GENERATION)
            });
        }
        // Gone meanwhile, or of another file system: left out.
        let Ok((stat, number)) = fs.look_up(dir.node.number, entry.name) else { return false };
        let full = reply.add(number, entry.next, entry.name, &TTL, &attr::of(&stat, number), GENERATION);
        if full {
            fs.nodes.forget(number, 1);
        }
        full
    });
    match done {
        Ok(()) => reply.ok(),
        Err(e) => reply.error(told(e)),
    }
}
