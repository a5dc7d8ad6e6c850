//! io_uring, by its system calls.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

const SETUP: i64 = libc::SYS_io_uring_setup;
const ENTER: i64 = libc::SYS_io_uring_enter;
const OFF_SUBMISSION: i64 = 0;
const OFF_COMPLETION: i64 = 0x800_0000;
const OFF_ENTRIES: i64 = 0x1000_0000;
pub const READ: u8 = 22;
pub const WRITE: u8 = 23;
pub const FSYNC: u8 = 3;
const FTRUNCATE: u8 = 55;

/// `struct io_uring_params`, flattened: ten words, then two blocks of offsets.
#[repr(C)]
#[derive(Default)]
struct Parameters {
    head: [u32; 10],
    submission: [u32; 10],
    completion: [u32; 10],
}

/// `struct io_uring_sqe`.
#[repr(C)]
#[derive(Default, Clone, Copy)]
pub struct Sqe {
    opcode: u8,
    flags: u8,
    priority: u16,
    descriptor: i32,
    offset: u64,
    address: u64,
    length: u32,
    operation_flags: u32,
    user_data: u64,
    rest: [u64; 3],
}

/// One of four entries.
pub struct Uring {
    fd: c_int,
    submission: *mut u8,
    completion: *mut u8,
    entries: *mut Sqe,
    parameters: Parameters,
}

impl Uring {
    /// `None` where a front refuses.
    pub fn new() -> Option<Uring> {
        let mut parameters = Parameters::default();
        // SAFETY: the kernel fills in the parameters; the three mappings are the ones it describes.
        unsafe {
            let fd = libc::syscall(SETUP, 4, &raw mut parameters) as c_int;
            if fd < 0 {
                return None;
            }
            let map = |offset| {
                let both = libc::PROT_READ | libc::PROT_WRITE;
                libc::mmap(std::ptr::null_mut(), 4096, both, libc::MAP_SHARED, fd, offset)
            };
            let (submission, completion, entries) =
                (map(OFF_SUBMISSION), map(OFF_COMPLETION), map(OFF_ENTRIES));
            if [submission, completion, entries].contains(&libc::MAP_FAILED) {
                return None;
            }
            Some(Uring {
                fd,
                submission: submission.cast(),
                completion: completion.cast(),
                entries: entries.cast(),
                parameters,
            })
        }
    }

    fn word(base: *mut u8, offset: u32) -> &'static AtomicU32 {
        // SAFETY: offsets come from the kernel and lie inside the mapped page, which stays mapped.
        unsafe { &*base.add(offset as usize).cast::<AtomicU32>() }
    }

    /// Submits one entry, waits for its completion: its result.
    pub fn run(&self, entry: Sqe) -> i32 {
        let (sq, cq) = (&self.parameters.submission, &self.parameters.completion);
        let (tail, mask) =
            (Self::word(self.submission, sq[1]), Self::word(self.submission, sq[2]).load(Ordering::Relaxed));
        let index = tail.load(Ordering::Relaxed) & mask;
        // SAFETY: the index is masked; the kernel does not read the entry before the tail moves.
        unsafe { self.entries.add(index as usize).write(entry) };
        Self::word(self.submission, sq[6] + 4 * index).store(index, Ordering::Relaxed);
        tail.fetch_add(1, Ordering::Release);
        // SAFETY: one submission, one completion to wait for.
        let enter =
            |new: c_int| unsafe { libc::syscall(ENTER, self.fd, new, 1, 1, std::ptr::null::<c_void>(), 0) };
        enter(1);
        let (head, end) = (Self::word(self.completion, cq[0]), Self::word(self.completion, cq[1]));
        // A signal, or work of the kernel's own, ends the wait too soon.
        while end.load(Ordering::Acquire) == head.load(Ordering::Relaxed) {
            enter(0);
        }
        let mask = Self::word(self.completion, cq[2]).load(Ordering::Relaxed);
        let at = cq[5] + 16 * (head.load(Ordering::Relaxed) & mask);
        let result = Self::word(self.completion, at + 8).load(Ordering::Acquire) as i32;
        head.fetch_add(1, Ordering::Release);
        result
    }
}

/// A read or a write of a page, which must outlive it.
pub fn entry(opcode: u8, fd: c_int, page: &[u8], offset: u64) -> Sqe {
    Sqe {
        opcode,
        descriptor: fd,
        offset,
        address: page.as_ptr() as u64,
        length: page.len() as u32,
        ..Sqe::default()
    }
}

/// An ftruncate.
pub fn truncation(fd: c_int, length: u64) -> Sqe {
    Sqe { opcode: FTRUNCATE, descriptor: fd, offset: length, ..Sqe::default() }
}
