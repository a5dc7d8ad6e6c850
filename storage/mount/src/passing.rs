//! Files that the kernel reads and writes past us: each has a number, which it takes from us and is given back.
//!
//! fuser gives a number back by the descriptor that its request came by; of a request that came by io_uring that is
//! none of the kernel's. So it is done here, by the one that the mount was made with.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use fuser::{BackingId, FileHandle, FopenFlags, ReplyCreate, ReplyOpen};
use rustix::ioctl::{Opcode, Setter, ioctl, opcode};

const BACKING_CLOSE: Opcode = opcode::write::<u32>(229, 2);

/// A file's number. The kernel goes past us as long as it lives.
pub struct Passed {
    number: u32,
    device: Arc<OwnedFd>,
}

impl Passed {
    /// Of a backing file.
    ///
    /// # Errors
    /// What the kernel says: not for us, or not of this file system.
    pub fn new(device: &Arc<OwnedFd>, file: impl AsFd) -> io::Result<Self> {
        let number = BackingId::create_raw(device, file)?;
        Ok(Self { number, device: Arc::clone(device) })
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        // SAFETY: FUSE_DEV_IOC_BACKING_CLOSE reads a number of 32 bits.
        let _ = unsafe { ioctl(&*self.device, Setter::<BACKING_CLOSE, u32>::new(self.number)) };
    }
}

/// Answers an open.
pub fn opened(reply: ReplyOpen, opened: &Opened) {
    let Some(passed) = &opened.backing else { return reply.opened(opened.handle, opened.flags) };
    // SAFETY: the number is open as long as `passed` lives, and goes back to it at once.
    let id = unsafe { reply.wrap_backing(passed.number) };
    reply.opened_passthrough(opened.handle, opened.flags, &id);
    id.into_raw();
}

/// Answers a create.
pub fn created(
    reply: ReplyCreate,
    ttl: &Duration,
    attr: &fuser::FileAttr,
    generation: fuser::Generation,
    made: &Opened,
) {
    let Some(passed) = &made.backing else {
        return reply.created(ttl, attr, generation, made.handle, made.flags);
    };
    // SAFETY: the number is open as long as `passed` lives, and goes back to it at once.
    let id = unsafe { reply.wrap_backing(passed.number) };
    reply.created_passthrough(ttl, attr, generation, made.handle, made.flags, &id);
    id.into_raw();
}

/// What we tell the kernel of an open file.
pub struct Opened {
    /// Its number.
    pub handle: FileHandle,
    /// How the kernel treats it.
    pub flags: FopenFlags,
    /// The backing file it may use by itself.
    pub backing: Option<Arc<Passed>>,
}
