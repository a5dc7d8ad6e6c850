//! O_DIRECT: aligned, misaligned, mixed with buffered descriptors.

use crate::cases::tools::Aligned;
use crate::context::Context;
use libc::{O_DIRECT, O_DSYNC, O_RDWR};
use std::ffi::c_int;

fn direct_write(cx: &Context, fd: c_int, fill: u8, length: usize, offset: i64, shift: usize) {
    let buffer = Aligned::new(fill, length, 4096, shift);
    cx.note(format_args!("length {length} offset {offset} address +{shift}:"));
    call!(cx, pwrite(fd, buffer.address(), length, offset));
}

fn aligned(cx: &Context) {
    let fd = cx.file_with("a", O_DIRECT);
    direct_write(cx, fd, b'B', 4096, 0, 0);
    cx.fdatasync(fd);
    direct_write(cx, fd, b'C', 65_536, 4096, 0);
    cx.fdatasync(fd);
    let buffered = cx.open(&cx.path("a"), O_RDWR);
    cx.show(buffered);
    let mut buffer = Aligned::new(0, 8192, 4096, 0);
    call!(cx, pread(fd, buffer.address_mut(), 8192, 0));
    cx.note(crate::trace::summary(buffer.bytes()));
}

fn misaligned(cx: &Context) {
    let fd = cx.file_with("a", O_DIRECT);
    direct_write(cx, fd, b'B', 100, 0, 0);
    direct_write(cx, fd, b'C', 4096, 100, 0);
    direct_write(cx, fd, b'D', 4096, 0, 1);
    direct_write(cx, fd, b'E', 5000, 8192, 0);
    cx.fsync(fd);
    let buffered = cx.open(&cx.path("a"), O_RDWR);
    cx.write_sync_show(buffered);
}

fn mixed_with_buffered(cx: &Context) {
    let direct = cx.file_with("a", O_DIRECT);
    let buffered = cx.open(&cx.path("a"), O_RDWR);
    for round in 0..3 {
        cx.pwrite(buffered, b'b', 4096, round * 8192);
        direct_write(cx, direct, b'd', 4096, round * 8192 + 4096, 0);
        cx.fdatasync(if round % 2 == 0 { buffered } else { direct });
    }
    cx.show(buffered);
}

fn direct_and_dsync(cx: &Context) {
    let fd = cx.file_with("a", O_DIRECT | O_DSYNC);
    direct_write(cx, fd, b'B', 8192, 0, 0);
    direct_write(cx, fd, b'C', 8192, 16_384, 0);
    let buffered = cx.open(&cx.path("a"), O_RDWR);
    cx.show(buffered);
}

fn flag_switched_on(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 100, 0);
    call!(cx, fcntl(fd, libc::F_SETFL, O_DIRECT));
    direct_write(cx, fd, b'C', 4096, 4096, 0);
    direct_write(cx, fd, b'D', 77, 0, 0);
    call!(cx, fcntl(fd, libc::F_SETFL, 0));
}

fn vectored(cx: &Context) {
    let fd = cx.file_with("a", O_DIRECT);
    let (one, two) = (Aligned::new(b'1', 4096, 4096, 0), Aligned::new(b'2', 8192, 4096, 0));
    let mut parts = [
        libc::iovec { iov_base: one.address().cast_mut(), iov_len: 4096 },
        libc::iovec { iov_base: two.address().cast_mut(), iov_len: 8192 },
    ];
    call!(cx, pwritev(fd, parts.as_ptr(), 2, 4096));
    cx.fsync(fd);
    parts[1].iov_len = 100;
    call!(cx, pwritev(fd, parts.as_ptr(), 2, 0));
    let buffered = cx.open(&cx.path("a"), O_RDWR);
    cx.show(buffered);
}

family!("direct" => on_a_file [
    flag_switched_on,
], others [
    aligned, misaligned, mixed_with_buffered, direct_and_dsync, vectored,
]);
