//! lseek together with write: whose offset moves, and to where.

use crate::context::Context;
use libc::{O_RDWR, SEEK_CUR, SEEK_END, SEEK_SET};
use std::ffi::{c_int, c_void};

fn write_moves_the_offset(cx: &Context, fd: c_int) {
    cx.write(fd, b'B', 10);
    cx.seek(fd, 0, SEEK_CUR);
    cx.seek(fd, 4000, SEEK_SET);
    cx.write(fd, b'C', 200);
    cx.seek(fd, 0, SEEK_CUR);
    cx.pwrite(fd, b'D', 10, 0);
    cx.seek(fd, 0, SEEK_CUR);
    cx.sync_show(fd);
}

fn past_the_end(cx: &Context, fd: c_int) {
    cx.seek(fd, 1000, SEEK_END);
    cx.write(fd, b'B', 10);
    cx.sync_show(fd);
    cx.seek(fd, -5, SEEK_END);
    cx.write(fd, b'C', 10);
    cx.sync_show(fd);
}

fn errors(cx: &Context, fd: c_int) {
    cx.seek(fd, -1, SEEK_SET);
    cx.seek(fd, -100_000, SEEK_CUR);
    cx.seek(fd, i64::MAX, SEEK_SET);
    cx.seek(fd, 0, 77);
}

fn read_and_write_share_it(cx: &Context, fd: c_int) {
    let mut buffer = [0_u8; 100];
    call!(cx, read(fd, buffer.as_mut_ptr().cast::<c_void>(), 100));
    cx.write(fd, b'B', 10);
    call!(cx, read(fd, buffer.as_mut_ptr().cast::<c_void>(), 50));
    cx.write(fd, b'C', 10);
    cx.sync_show(fd);
}

fn descriptions_have_their_own(cx: &Context) {
    let one = cx.file("a");
    let two = cx.open(&cx.path("a"), O_RDWR);
    cx.write(one, b'1', 10);
    cx.write(two, b'2', 5);
    cx.write(one, b'3', 10);
    cx.write(two, b'4', 5);
    cx.sync_show(one);
    cx.show(two);
}

/// A failed write leaves the offset alone; a partial one moves it by what it wrote.
fn failed_writes(cx: &Context, fd: c_int) {
    cx.seek(fd, 100, SEEK_SET);
    call!(cx, write(fd, 0x10 as *const c_void, 10));
    cx.seek(fd, 0, SEEK_CUR);
    let pages = crate::cases::tools::half_mapped();
    call!(cx, write(fd, pages.cast(), 8192));
    cx.seek(fd, 0, SEEK_CUR);
}

family!("seek" => on_a_file [
    write_moves_the_offset, past_the_end, errors, read_and_write_share_it, failed_writes,
], others [
    descriptions_have_their_own,
]);
