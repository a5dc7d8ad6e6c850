//! File calls made through `syscall(2)`: the same file, another door.

use crate::context::Context;
use libc::{AT_FDCWD, O_RDWR};
use std::ffi::c_int;

fn writes_by_number(cx: &Context, fd: c_int) {
    let text = c"by number".as_ptr();
    cx.pwrite(fd, b'B', 1000, 0);
    cx.fsync(fd);
    let part = libc::iovec { iov_base: text.cast_mut().cast(), iov_len: 9 };
    call!(cx, syscall(libc::SYS_pwrite64, fd, text, 9_usize, 10_i64));
    cx.fsync(fd);
    call!(cx, syscall(libc::SYS_write, fd, text, 9_usize));
    call!(cx, syscall(libc::SYS_writev, fd, &raw const part, 1));
    call!(cx, syscall(libc::SYS_pwritev, fd, &raw const part, 1, 100_i64, 0_i64));
    call!(cx, syscall(libc::SYS_pwritev2, fd, &raw const part, 1, 200_i64, 0_i64, libc::RWF_DSYNC));
    cx.pwrite(fd, b'C', 5, 12);
    call!(cx, syscall(libc::SYS_fsync, fd));
    call!(cx, syscall(libc::SYS_fdatasync, fd));
    cx.show(fd);
}

fn truncation_by_number(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 5000, 0);
    call!(cx, syscall(libc::SYS_ftruncate, fd, 100_i64));
    cx.write_sync_show(fd);
    call!(cx, syscall(libc::SYS_truncate, cx.path("a").as_ptr(), 3000_i64));
    call!(cx, syscall(libc::SYS_fallocate, fd, 0, 0_i64, 5000_i64));
}

fn descriptors_by_number(cx: &Context) {
    cx.file("a");
    let path = cx.path("a");
    let fd = call!(cx, Descriptor, syscall(libc::SYS_openat, AT_FDCWD, path.as_ptr(), O_RDWR, 0)) as c_int;
    cx.write_sync_show(fd);
    let copy = call!(cx, Descriptor, syscall(libc::SYS_dup, fd)) as c_int;
    cx.write_sync_show(copy);
    call!(cx, syscall(libc::SYS_close, fd));
    let plain = cx.open(&cx.plain_path("p"), O_RDWR | libc::O_CREAT);
    cx.note(format_args!("same number: {}", plain == fd));
    cx.write_sync_show(plain);
    call!(cx, Descriptor, syscall(libc::SYS_dup3, copy, plain, libc::O_CLOEXEC));
    cx.write_sync_show(plain);
    call!(cx, syscall(libc::SYS_close_range, 3, 1000, 0));
    cx.fsync(copy);
}

fn names_by_number(cx: &Context) {
    let fd = cx.file("a");
    cx.pwrite(fd, b'B', 100, 0);
    call!(
        cx,
        syscall(libc::SYS_renameat2, AT_FDCWD, cx.path("a").as_ptr(), AT_FDCWD, cx.path("b").as_ptr(), 0)
    );
    cx.write_sync_show(fd);
    call!(cx, syscall(libc::SYS_unlinkat, AT_FDCWD, cx.path("b").as_ptr(), 0));
    cx.write_sync_show(fd);
    let fresh = cx.file("b");
    cx.write_sync_show(fresh);
}

fn errors(cx: &Context, fd: c_int) {
    call!(cx, syscall(libc::SYS_write, -1, c"x".as_ptr(), 1_usize));
    call!(cx, syscall(libc::SYS_pwrite64, fd, c"x".as_ptr(), 1_usize, -1_i64));
    call!(cx, syscall(libc::SYS_fsync, 99_999));
    call!(cx, syscall(99_999, fd));
    call!(cx, syscall(-1, fd));
}

family!("syscalls" => on_a_file [
    writes_by_number, truncation_by_number, errors,
], others [
    descriptors_by_number, names_by_number,
]);
