//! libaio's system calls. A front may refuse them at set-up (ENOSYS); then programs fall back to
//! pwrite, and so does the case: what must agree is the file.

use crate::context::Context;
use std::ffi::c_int;

/// The kernel's `struct iocb`.
#[repr(C)]
#[derive(Default)]
struct ControlBlock {
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

const PWRITE: u16 = 1;
const FSYNC: u16 = 2;
const PWRITEV: u16 = 8;

/// Submits one block and waits for it; its result.
fn submit(context: u64, block: &mut ControlBlock) -> i64 {
    let mut blocks = [std::ptr::from_mut(block)];
    let mut events = [Event::default()];
    // SAFETY: block, buffer and events outlive the wait.
    unsafe {
        let submitted = libc::syscall(libc::SYS_io_submit, context, 1_i64, blocks.as_mut_ptr());
        if submitted != 1 {
            return -i64::from(crate::call::errno());
        }
        libc::syscall(
            libc::SYS_io_getevents,
            context,
            1_i64,
            1_i64,
            events.as_mut_ptr(),
            std::ptr::null::<libc::timespec>(),
        );
    }
    events[0].result
}

fn block(opcode: u16, fd: c_int, buffer: u64, length: u64, offset: i64) -> ControlBlock {
    ControlBlock { opcode, descriptor: fd as u32, buffer, length, offset, ..ControlBlock::default() }
}

/// An aio context, or `None` where the front refuses.
fn set_up() -> Option<u64> {
    let mut context = 0_u64;
    // SAFETY: the kernel fills in the context.
    let made = unsafe { libc::syscall(libc::SYS_io_setup, 16, &raw mut context) };
    (made == 0).then_some(context)
}

fn submitted_writes(cx: &Context) {
    let fd = cx.file("a");
    let page = [b'i'; 4096];
    cx.pwrite(fd, b'B', 5000, 0);
    cx.fsync(fd);
    for offset in [0_i64, 6000, 20_000] {
        let address = page.as_ptr() as u64;
        let written = match set_up() {
            None => {
                // SAFETY: plain call on a local buffer.
                unsafe { libc::pwrite(fd, page.as_ptr().cast(), page.len(), offset) as i64 }
            }
            Some(context) => submit(context, &mut block(PWRITE, fd, address, page.len() as u64, offset)),
        };
        cx.note(format_args!("wrote {written}"));
        cx.pwrite(fd, b'C', 10, offset + 5);
        cx.fsync(fd);
    }
    cx.show(fd);
    cx.write_sync_show(fd);
}

fn submitted_vectors_and_syncs(cx: &Context) {
    let fd = cx.file("a");
    let part = libc::iovec { iov_base: c"aio vector".as_ptr().cast_mut().cast(), iov_len: 10 };
    let (written, synced) = match set_up() {
        // SAFETY: plain calls on a static text.
        None => unsafe { (libc::pwritev(fd, &raw const part, 1, 77) as i64, i64::from(libc::fsync(fd))) },
        Some(context) => (
            submit(context, &mut block(PWRITEV, fd, (&raw const part) as u64, 1, 77)),
            submit(context, &mut block(FSYNC, fd, 0, 0, 0)),
        ),
    };
    cx.note(format_args!("wrote {written} synced {synced}"));
    cx.fsync(fd);
    cx.write_sync_show(fd);
}

family!("kernel_aio" => [submitted_writes, submitted_vectors_and_syncs]);
