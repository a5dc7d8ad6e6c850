//! dup, dup2, dup3, F_DUPFD: one offset, one set of status flags, several numbers.

use crate::context::Context;
use libc::{F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_GETFL, F_SETFL, O_CLOEXEC, O_CREAT, O_RDWR};
use std::ffi::c_int;

fn offsets_are_shared(cx: &Context, fd: c_int) {
    let copies = [
        fd,
        call!(cx, Descriptor, dup(fd)) as c_int,
        call!(cx, Descriptor, dup2(fd, 300)) as c_int,
        call!(cx, Descriptor, dup3(fd, 301, O_CLOEXEC)) as c_int,
        call!(cx, Descriptor, fcntl(fd, F_DUPFD, 302)) as c_int,
        call!(cx, Descriptor, fcntl(fd, F_DUPFD_CLOEXEC, 303)) as c_int,
        call_named!(cx, Descriptor, "__dup2", fn(c_int, c_int) -> c_int, (fd, 304)) as c_int,
        call_named!(cx, Descriptor, "fcntl64", fn(c_int, c_int, c_int) -> c_int, (fd, F_DUPFD, 305)) as c_int,
    ];
    for (index, copy) in copies.into_iter().enumerate() {
        cx.write(copy, b'0' + index as u8, 100);
        cx.fsync(copy);
        call!(cx, fcntl(copy, F_GETFD));
    }
    cx.show(fd);
}

fn numbers(cx: &Context) {
    let fd = cx.file("a");
    call!(cx, dup2(fd, 310));
    call!(cx, dup3(fd, 311, 0));
    call!(cx, fcntl(fd, F_DUPFD, 312));
    call!(cx, fcntl(fd, F_DUPFD, 312));
    call!(cx, dup2(310, 310));
    call!(cx, dup3(310, 310, 0));
    call!(cx, dup3(310, 315, 0x77));
    call!(cx, dup2(fd, -1));
    call!(cx, dup2(fd, 1 << 30));
    call!(cx, dup2(-1, 310));
    call!(cx, dup2(99_999, 310));
    call!(cx, fcntl(fd, F_DUPFD, -1));
    cx.write_sync_show(310);
}

fn closing_one_keeps_the_others(cx: &Context) {
    let fd = cx.file("a");
    let copy = call!(cx, Descriptor, dup(fd)) as c_int;
    cx.close(fd);
    cx.pwrite(fd, b'x', 10, 0);
    cx.write_sync_show(copy);
    cx.write_sync_show(copy);
}

/// dup2 puts another file under a managed number, and the reverse.
fn over_an_open_number(cx: &Context) {
    let managed = cx.file("a");
    let plain = cx.open(&cx.plain_path("p"), O_RDWR | O_CREAT);
    cx.pwrite(managed, b'1', 100, 0);
    cx.fsync(managed);
    let (keep_managed, keep_plain) = (400, 401);
    call!(cx, dup2(managed, keep_managed));
    call!(cx, dup2(plain, keep_plain));
    call!(cx, Descriptor, dup2(keep_plain, managed));
    call!(cx, Descriptor, dup3(keep_managed, plain, 0));
    cx.pwrite(managed, b'p', 50, 0);
    cx.fsync(managed);
    cx.pwrite(plain, b'm', 50, 10);
    cx.fsync(plain);
    cx.show(keep_managed);
    cx.show(keep_plain);
}

fn status_flags_are_shared(cx: &Context, fd: c_int) {
    let copy = call!(cx, Descriptor, dup(fd)) as c_int;
    call!(cx, fcntl(copy, F_SETFL, libc::O_APPEND));
    call!(cx, fcntl(fd, F_GETFL));
    cx.write(fd, b'B', 10);
    cx.pwrite(fd, b'C', 10, 0);
    cx.fsync(copy);
    cx.show(fd);
}

fn redirected_standard_output(cx: &Context, fd: c_int) {
    let saved = call!(cx, Descriptor, fcntl(1, F_DUPFD, 500)) as c_int;
    // SAFETY: plain calls; nothing is traced while descriptor 1 is the file.
    unsafe {
        libc::dup2(fd, 1);
        libc::write(1, c"to standard output".as_ptr().cast(), 18);
        libc::fsync(1);
        libc::dup2(saved, 1);
    }
}

family!("dup" => on_a_file [
    offsets_are_shared, status_flags_are_shared, redirected_standard_output,
], others [
    numbers, closing_one_keeps_the_others, over_an_open_number,
]);
