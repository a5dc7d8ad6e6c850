//! Asynchronous writes, libc's and the kernel's: they end at a time of their own, so the file stays out of the
//! log until the process ends. Their fsyncs are real: what is in the log is made durable first, where that takes a
//! device.

use core::ffi::{c_int, c_long, c_ulong, c_void};

use seawall_core::Errno;

use super::{entry, real_or};
use crate::asynchronous::announce;
use crate::sys::unsafe_call;
use crate::{app, errno, io_uring, journal};

const LIO_WRITE: c_int = 1;
const IOCB_CMD_PWRITE: u16 = 1;
const IOCB_CMD_PWRITEV: u16 = 8;
const IOCB_CMD_FSYNC: u16 = 2;
const IOCB_CMD_FDSYNC: u16 = 3;
/// PREAD, POLL, NOOP, PREADV.
const HARMLESS: [u16; 4] = [0, 5, 6, 7];
/// Names no file: the request fails.
const NO_FILE: u32 = u32::MAX;

/// The kernel's `struct iocb`, as far as we read it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Iocb {
    data: u64,
    key: u32,
    call_flags: u32,
    opcode: u16,
    priority: i16,
    fd: u32,
}

entry! {
    fn aio_write | aio_write64 (block: *mut libc::aiocb) -> c_int {
        announce((*block).aio_fildes);
        real_or!(-1, c"aio_write", fn(block: *mut libc::aiocb) -> c_int)
    }

    /// It may wait.
    fn lio_listio | lio_listio64 (
        mode: c_int, blocks: *const *mut libc::aiocb, n: c_int, event: *mut c_void
    ) -> c_int, passes if { listed(blocks, n); true } {
        listed(blocks, n);
        real_or!(-1, c"lio_listio",
            fn(mode: c_int, blocks: *const *mut libc::aiocb, n: c_int, event: *mut c_void) -> c_int)
    }

    fn aio_fsync | aio_fsync64 (operation: c_int, block: *mut libc::aiocb) -> c_int {
        match journal::harden_all() {
            Ok(()) => real_or!(-1, c"aio_fsync", fn(operation: c_int, block: *mut libc::aiocb) -> c_int),
            Err(e) => errno::zero(Err(e)),
        }
    }

    /// libaio's, as the following: no context where io_uring is refused.
    fn io_setup (events: c_int, context: *mut c_ulong) -> c_int {
        match context_of(events as usize, context) {
            Ok(_) => 0,
            Err(e) => -e.raw_os_error(),
        }
    }

    fn io_queue_init (events: c_int, context: *mut c_ulong) -> c_int {
        if events <= 0 {
            return -libc::EINVAL;
        }
        *context = 0;
        match context_of(events as usize, context) {
            Ok(_) => 0,
            Err(e) => -e.raw_os_error(),
        }
    }

    /// Returns the error number, negative, and leaves errno alone.
    fn io_submit (context: c_ulong, n: c_long, blocks: *mut *mut Iocb) -> c_int {
        submitting(n, blocks);
        match unsafe_call!(SYS_io_submit, context, n, blocks) {
            Ok(n) => n as c_int,
            Err(e) => -e.raw_os_error(),
        }
    }
}

/// Holds what a list of requests writes.
///
/// # Safety
/// `n` blocks, as for lio_listio(3).
unsafe fn listed(blocks: *const *mut libc::aiocb, n: c_int) {
    for i in 0..n.max(0) as usize {
        // SAFETY: the caller's.
        if let Some(block) = unsafe { (*blocks.add(i)).as_ref() }
            && block.aio_lio_opcode == LIO_WRITE
        {
            announce(block.aio_fildes);
        }
    }
}

/// io_setup(2).
pub fn context_of(events: usize, context: *mut c_ulong) -> Result<usize, Errno> {
    if io_uring::are_refused() { Err(Errno::NOSYS) } else { unsafe_call!(SYS_io_setup, events, context) }
}

/// Holds the files that these blocks write. A sync whose log cannot be made durable becomes one that fails. The kernel
/// takes one block after the other, up to the first that it cannot read or store its key in (EFAULT); so do we.
///
/// # Safety
/// `n` blocks, as for io_submit(2).
pub unsafe fn submitting(n: c_long, blocks: *mut *mut Iocb) {
    for i in 0..n.max(0) as usize {
        // SAFETY: any bits are a pointer.
        let Some(at) = (unsafe { app::value(blocks.wrapping_add(i)) }) else { return };
        if !app::is_writable(at as usize, size_of::<Iocb>()) {
            return;
        }
        // SAFETY: it can be read and written, as we have just seen, and is the application's own for its call.
        let mut block = unsafe { at.read_unaligned() };
        if prepare(&mut block) {
            // SAFETY: as above.
            unsafe { at.write_unaligned(block) };
        }
    }
}

/// True if the block was changed.
fn prepare(block: &mut Iocb) -> bool {
    match block.opcode {
        opcode if HARMLESS.contains(&opcode) => false,
        IOCB_CMD_FSYNC | IOCB_CMD_FDSYNC => {
            let fails = journal::harden_all().is_err();
            if fails {
                block.fd = NO_FILE;
            }
            fails
        }
        opcode => {
            let flags = announce(block.fd as c_int);
            let changes = flags != 0 && matches!(opcode, IOCB_CMD_PWRITE | IOCB_CMD_PWRITEV);
            if changes {
                block.call_flags |= flags;
            }
            changes
        }
    }
}
