//! O_DSYNC, O_SYNC and what F_GETFL tells about a descriptor.

use crate::context::Context;
use libc::{F_GETFL, F_SETFL, O_APPEND, O_DIRECT, O_DSYNC, O_NOATIME, O_NONBLOCK, O_RDWR, O_SYNC};
use std::ffi::c_int;

fn show_flags(cx: &Context, fd: c_int) {
    // SAFETY: plain call.
    let flags = unsafe { libc::fcntl(fd, F_GETFL) };
    cx.note(format_args!("flags {flags:#o}"));
}

fn flags_are_kept(cx: &Context) {
    cx.file("a");
    for flags in [
        0,
        O_DSYNC,
        O_SYNC,
        O_APPEND,
        O_DSYNC | O_APPEND,
        O_DIRECT,
        O_DIRECT | O_DSYNC,
        O_NOATIME,
        O_NONBLOCK,
    ] {
        let fd = cx.open(&cx.path("a"), O_RDWR | flags);
        show_flags(cx, fd);
        call!(cx, fcntl(fd, libc::F_GETFD));
        cx.close(fd);
    }
}

fn setting_flags(cx: &Context) {
    let fd = cx.file("a");
    for flags in [O_DSYNC, O_SYNC, O_APPEND | O_NONBLOCK, O_DIRECT, 0] {
        call!(cx, fcntl(fd, F_SETFL, flags));
        show_flags(cx, fd);
    }
    cx.write_sync_show(fd);
}

fn synchronous_writes(cx: &Context, flags: c_int) {
    let fd = cx.file_with("a", flags);
    show_flags(cx, fd);
    cx.pwrite(fd, b'B', 4096, 0);
    cx.write(fd, b'C', 100);
    cx.pwrite(fd, b'D', 5000, 20_000);
    let part = libc::iovec { iov_base: c"vector".as_ptr().cast_mut().cast(), iov_len: 6 };
    call!(cx, pwritev(fd, &raw const part, 1, 300));
    call!(cx, writev(fd, &raw const part, 1));
    cx.show(fd);
    call!(cx, ftruncate(fd, 500));
    cx.write_sync_show(fd);
}

fn odsync(cx: &Context) {
    synchronous_writes(cx, O_DSYNC);
}

fn osync(cx: &Context) {
    synchronous_writes(cx, O_SYNC);
}

fn odsync_append(cx: &Context) {
    synchronous_writes(cx, O_DSYNC | O_APPEND);
}

/// PostgreSQL's open_datasync on a new segment: created, filled, then overwritten through O_DSYNC.
fn odsync_on_a_new_file(cx: &Context) {
    let fd = cx.open(&cx.path("new"), O_RDWR | O_DSYNC | libc::O_CREAT | libc::O_EXCL);
    for page in 0..4 {
        cx.pwrite(fd, b'n', 8192, page * 8192);
    }
    cx.fsync(fd);
    for page in 0..4 {
        cx.pwrite(fd, b'o', 8192, page * 8192);
    }
    cx.show(fd);
}

family!("sync_flags" => [
    flags_are_kept, setting_flags, odsync, osync, odsync_append, odsync_on_a_new_file,
]);
