//! libaio's system calls.

use std::ffi::c_int;

use crate::call::errno;

/// The kernel's `struct iocb`.
#[repr(C)]
#[derive(Default)]
pub struct ControlBlock {
    data: u64,
    key: u32,
    flags: i32,
    opcode: u16,
    priority: i16,
    descriptor: u32,
    buffer: u64,
    length: u64,
    offset: i64,
    reserved: u64,
    more_flags: u32,
    event_descriptor: u32,
}

/// The kernel's `struct io_event`.
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    second_result: i64,
}

pub const PREAD: u16 = 0;
pub const PWRITE: u16 = 1;
pub const FSYNC: u16 = 2;
pub const PWRITEV: u16 = 8;

/// As many at once as a context is made for.
pub const MOST: usize = 16;

/// What is asked for. The buffer must outlive it.
pub fn block(opcode: u16, fd: c_int, buffer: u64, length: u64, offset: i64) -> ControlBlock {
    ControlBlock { opcode, descriptor: fd as u32, buffer, length, offset, ..ControlBlock::default() }
}

/// A context.
pub struct Aio(u64);

impl Aio {
    /// `None` where a front refuses.
    pub fn new() -> Option<Aio> {
        let mut context = 0_u64;
        // SAFETY: the kernel fills in the context.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, MOST, &raw mut context) };
        (made == 0).then_some(Aio(context))
    }

    /// Submits one block and waits for it; its result.
    pub fn submit(&self, block: ControlBlock) -> i64 {
        self.submit_all(&mut [block])
    }

    /// Submits blocks and waits for all of them; the sum of their results, or the first error, negated.
    pub fn submit_all(&self, blocks: &mut [ControlBlock]) -> i64 {
        let mut pointers: Vec<_> = blocks.iter_mut().map(std::ptr::from_mut).collect();
        let mut events = [Event::default(); MOST];
        let count = pointers.len().min(MOST);
        // SAFETY: blocks, buffers and events outlive the wait.
        let done = unsafe {
            let submitted = libc::syscall(libc::SYS_io_submit, self.0, count, pointers.as_mut_ptr());
            if submitted < 1 {
                return -i64::from(errno());
            }
            let none = std::ptr::null::<libc::timespec>();
            libc::syscall(libc::SYS_io_getevents, self.0, submitted, submitted, events.as_mut_ptr(), none)
        };
        let results = events.iter().take(usize::try_from(done).unwrap_or(0)).map(|event| event.result);
        results.clone().find(|result| *result < 0).unwrap_or_else(|| results.sum())
    }
}

impl Drop for Aio {
    fn drop(&mut self) {
        // SAFETY: ours, with nothing under way.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}
