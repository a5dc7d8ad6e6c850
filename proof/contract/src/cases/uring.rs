//! io_uring, by its system calls. As for [`super::kernel_aio`]: refusing it at set-up is allowed, and
//! then the case writes with pwrite, as databases do.

use crate::context::{Context, open_quietly};
use crate::uring::{FSYNC, READ, Uring, WRITE, entry, truncation};
use std::ffi::c_int;

fn write_by(uring: Option<&Uring>, fd: c_int, page: &[u8], offset: u64) -> i64 {
    match uring {
        Some(uring) => i64::from(uring.run(entry(WRITE, fd, page, offset))),
        // SAFETY: plain call on a borrowed buffer.
        None => unsafe { libc::pwrite(fd, page.as_ptr().cast(), page.len(), offset as i64) as i64 },
    }
}

fn writes_and_syncs(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 5000, 0);
    cx.fsync(fd);
    let uring = Uring::new();
    let page = [b'u'; 3000];
    for offset in [0, 7000, 20_000] {
        cx.note(format_args!("wrote {}", write_by(uring.as_ref(), fd, &page, offset)));
        cx.pwrite(fd, b'C', 10, offset as i64 + 100);
        cx.fdatasync(fd);
    }
    let synced = uring.as_ref().map_or(0, |uring| uring.run(entry(FSYNC, fd, &[], 0)));
    cx.note(format_args!("synced {synced}"));
    cx.show(fd);
}

fn made_before_the_file(cx: &Context) {
    let uring = Uring::new();
    let fd = cx.file("a");
    cx.pwrite(fd, b'B', 100, 0);
    cx.note(format_args!("wrote {}", write_by(uring.as_ref(), fd, &[b'u'; 50], 20)));
    cx.fsync(fd);
    // Where the kernel is too old for it, ftruncate says what io_uring would have said.
    let cut = uring.as_ref().map_or(-1, |uring| uring.run(truncation(fd, 4000)));
    if cut != 0 {
        // SAFETY: plain call.
        unsafe { libc::ftruncate(fd, 4000) };
    }
    cx.fsync(fd);
    cx.write_sync_show(fd);
}

/// A log that its writer opened with O_DSYNC, read by somebody else to its end and beyond.
fn a_read_meets_the_end(cx: &Context) {
    let writer = open_quietly(&cx.path("a"), libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | libc::O_DSYNC);
    assert!(writer >= 0);
    cx.pwrite(writer, b'A', 4096, 0);
    cx.pwrite(writer, b'B', 4096, 4096);
    let reader = open_quietly(&cx.path("a"), libc::O_RDONLY);
    let mut into = vec![b'.'; 32_768];
    let got = match Uring::new() {
        Some(uring) => i64::from(uring.run(entry(READ, reader, &into, 0))),
        // SAFETY: plain call on a buffer of ours.
        None => unsafe { libc::pread(reader, into.as_mut_ptr().cast(), into.len(), 0) as i64 },
    };
    let blocks: String = into.iter().step_by(4096).map(|byte| char::from(*byte)).collect();
    cx.note(format_args!("read {got}: {blocks}"));
}

family!("io_uring" => on_a_file [writes_and_syncs], others [made_before_the_file, a_read_meets_the_end]);
