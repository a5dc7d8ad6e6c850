//! What is about to be submitted to an io_uring of liburing's: read from its memory before the kernel does.
//!
//! Input: the application's `struct io_uring`, checked once at set-up by [`IoUring::is_as_known`]. Output: whether
//! the writes among the pending entries go to files that could be named, and were held. "No" sends the caller
//! back to the rule for those that cannot be seen.

use core::ffi::c_int;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, Ordering::Acquire};

use crate::{asynchronous, journal};

/// The beginning of liburing's `struct io_uring`: alike in all its versions up to 2.12.
#[repr(C)]
pub struct IoUring {
    head: *const AtomicU32,
    tail: *const AtomicU32,
    mask: *const u32,
    entries: *const u32,
    flags: *const u32,
    dropped: *const u32,
    array: *const u32,
    sqes: *mut Sqe,
    sqe_head: u32,
    sqe_tail: u32,
    bytes: usize,
    at: *const u8,
}
const _: () = assert!(offset_of!(IoUring, sqes) == 56 && offset_of!(IoUring, at) == 80);

/// The kernel's `struct io_uring_sqe`.
#[repr(C)]
struct Sqe {
    opcode: u8,
    flags: u8,
    priority: u16,
    fd: i32,
    offset: u64,
    address: u64,
    len: u32,
    call_flags: u32,
    rest: [u64; 4],
}
const _: () = assert!(size_of::<Sqe>() == 64 && offset_of!(Sqe, call_flags) == 28);

/// Names no file.
const NO_FILE: i32 = -1;
const FIXED_FILE: u8 = 1 << 0;
const DRAIN: u8 = 1 << 1;
const LINK: u8 = 1 << 2;
const HARDLINK: u8 = 1 << 3;
const ASYNC: u8 = 1 << 4;

/// `IORING_SETUP_` flags that leave entries 64 bytes long and submitted by a call: IOPOLL, CQSIZE, CLAMP,
/// ATTACH_WQ, R_DISABLED, SUBMIT_ALL, COOP_TASKRUN, TASKRUN_FLAG, CQE32, SINGLE_ISSUER, DEFER_TASKRUN,
/// NO_SQARRAY. Not SQPOLL, whose thread reads entries when it likes, nor what we do not know.
const KNOWN_SETUP: u32 = 0x1_3bf9;

/// True if an io_uring of these set-up flags can be seen.
pub const fn can_be_seen(setup_flags: u32) -> bool {
    setup_flags & !KNOWN_SETUP == 0
}

/// What an entry means to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// Nothing.
    Nothing,
    /// A sync: the kernel's, so always real. What is in the log is to be durable first.
    Sync,
    /// A write through its descriptor, with flags (`RWF_…`).
    Write,
    /// Another change of its descriptor's file.
    Change,
    /// It changes names or descriptors at a time of its own, or is not known.
    Unknown,
}

/// By opcode (`IORING_OP_…`, Linux 6.16).
const fn meaning(opcode: u8) -> Meaning {
    match opcode {
        // WRITEV, WRITE_FIXED, WRITE, WRITEV_FIXED
        2 | 5 | 23 | 61 => Meaning::Write,
        // FALLOCATE, SPLICE, TEE, FSETXATTR, FTRUNCATE
        17 | 30 | 33 | 41 | 55 => Meaning::Change,
        // FSYNC
        3 => Meaning::Sync,
        // NOP, READV, READ_FIXED, POLL_ADD, POLL_REMOVE, SYNC_FILE_RANGE, SENDMSG … CONNECT
        0 | 1 | 4 | 6..=16 => Meaning::Nothing,
        // STATX, READ, FADVISE, MADVISE, SEND, RECV, EPOLL_CTL, PROVIDE_BUFFERS, REMOVE_BUFFERS, SHUTDOWN
        21 | 22 | 24..=27 | 29 | 31 | 32 | 34 => Meaning::Nothing,
        // FGETXATTR, GETXATTR, SOCKET, SEND_ZC, SENDMSG_ZC, READ_MULTISHOT, WAITID, FUTEX_…
        43..=45 | 47..=53 => Meaning::Nothing,
        // BIND, LISTEN, RECV_ZC, EPOLL_WAIT, READV_FIXED
        56..=60 => Meaning::Nothing,
        // OPENAT, CLOSE, RENAMEAT, UNLINKAT, LINKAT, URING_CMD, MSG_RING …
        _ => Meaning::Unknown,
    }
}

impl IoUring {
    /// True if the one that liburing has just set up looks as described above.
    ///
    /// # Safety
    /// It was set up with success; of another layout perhaps, but as long.
    pub unsafe fn is_as_known(&self) -> bool {
        let inside = |at: *const u32| {
            let offset = (at as usize).wrapping_sub(self.at as usize);
            at.is_aligned() && offset.checked_add(4).is_some_and(|end| end <= self.bytes)
        };
        let fresh =
            self.sqe_head == 0 && self.sqe_tail == 0 && !self.sqes.is_null() && self.sqes.is_aligned();
        if self.at.is_null()
            || !fresh
            || ![self.head.cast(), self.tail.cast(), self.mask, self.entries].into_iter().all(inside)
        {
            return false;
        }
        // SAFETY: inside the memory that is shared with the kernel.
        let (mask, entries) = unsafe { (*self.mask, *self.entries) };
        entries.is_power_of_two() && mask == entries - 1
    }

    /// Holds the files that the pending entries write. False: it cannot be known which.
    ///
    /// Everything that the kernel has not consumed is looked at, so also what an earlier submission left over.
    ///
    /// # Safety
    /// One whose layout was found to be known, in the hands of the calling thread, as liburing demands.
    pub unsafe fn announce(&self) -> bool {
        // SAFETY: set up by liburing and mapped.
        let (head, mask) = unsafe { ((*self.head).load(Acquire), *self.mask) };
        let pending = self.sqe_tail.wrapping_sub(head);
        if pending > mask.wrapping_add(1) {
            return false;
        }
        let mut follows = false;
        (0..pending).all(|i| {
            let at = (head.wrapping_add(i) & mask) as usize;
            // SAFETY: one of its entries; the application gave it away by asking for its submission.
            let entry = unsafe { &mut *self.sqes.add(at) };
            let known = entry.announce(follows);
            follows = entry.flags & (LINK | HARDLINK) != 0;
            known
        })
    }
}

impl Sqe {
    /// Holds what the entry writes. False if that is not known now: the descriptor of a request that waits for
    /// another, or for a worker, is looked up when it runs.
    fn announce(&mut self, follows: bool) -> bool {
        let meaning = meaning(self.opcode);
        let changes = matches!(meaning, Meaning::Write | Meaning::Change);
        let later = follows || self.flags & (FIXED_FILE | ASYNC) != 0;
        if self.flags & DRAIN != 0 || meaning == Meaning::Unknown || changes && later {
            return false;
        }
        if meaning == Meaning::Sync && journal::harden_all().is_err() {
            // One that fails.
            self.fd = NO_FILE;
        }
        if changes {
            let flags = asynchronous::announce(self.fd as c_int);
            if meaning == Meaning::Write {
                self.call_flags |= flags;
            }
        }
        true
    }
}
