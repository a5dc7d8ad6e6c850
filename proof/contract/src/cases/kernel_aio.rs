//! libaio's system calls. A front may refuse them at set-up (ENOSYS); then programs fall back to
//! pwrite, and so does the case: what must agree is the file.

use crate::aio::{Aio, FSYNC, PWRITE, PWRITEV, block};
use crate::context::Context;
use std::ffi::c_int;

fn submitted_writes(cx: &Context, fd: c_int) {
    let page = [b'i'; 4096];
    cx.pwrite(fd, b'B', 5000, 0);
    cx.fsync(fd);
    for offset in [0_i64, 6000, 20_000] {
        let address = page.as_ptr() as u64;
        let written = match Aio::new() {
            None => {
                // SAFETY: plain call on a local buffer.
                unsafe { libc::pwrite(fd, page.as_ptr().cast(), page.len(), offset) as i64 }
            }
            Some(context) => context.submit(block(PWRITE, fd, address, page.len() as u64, offset)),
        };
        cx.note(format_args!("wrote {written}"));
        cx.pwrite(fd, b'C', 10, offset + 5);
        cx.fsync(fd);
    }
    cx.show(fd);
}

fn submitted_vectors_and_syncs(cx: &Context, fd: c_int) {
    let part = libc::iovec { iov_base: c"aio vector".as_ptr().cast_mut().cast(), iov_len: 10 };
    let (written, synced) = match Aio::new() {
        // SAFETY: plain calls on a static text.
        None => unsafe { (libc::pwritev(fd, &raw const part, 1, 77) as i64, i64::from(libc::fsync(fd))) },
        Some(context) => (
            context.submit(block(PWRITEV, fd, (&raw const part) as u64, 1, 77)),
            context.submit(block(FSYNC, fd, 0, 0, 0)),
        ),
    };
    cx.note(format_args!("wrote {written} synced {synced}"));
    cx.fsync(fd);
}

family!("kernel_aio" => on_a_file [submitted_writes, submitted_vectors_and_syncs]);
