//! Bytes that reach a file without a write: sendfile, copy_file_range, splice, vmsplice, reflinks.

use crate::context::Context;
use libc::{O_APPEND, O_CREAT, O_RDWR};
use std::ffi::c_int;
use std::ptr::null_mut;

/// ioctl(FICLONE): `_IOW(0x94, 9, int)`.
const CLONE: libc::c_ulong = 0x4004_9409;

fn source(cx: &Context) -> c_int {
    let fd = cx.open(&cx.plain_path("source"), O_RDWR | O_CREAT);
    cx.pwrite(fd, b'S', 20_000, 0);
    fd
}

fn pipe(cx: &Context) -> [c_int; 2] {
    let mut ends = [-1; 2];
    call!(cx, pipe(ends.as_mut_ptr()));
    ends
}

fn sendfile(cx: &Context) {
    let (fd, source) = (cx.file("a"), source(cx));
    cx.pwrite(fd, b'B', 100, 0);
    cx.seek(fd, 50, libc::SEEK_SET);
    let mut offset = 10;
    call!(cx, sendfile(fd, source, &raw mut offset, 5000));
    cx.note(format_args!("offset {offset}"));
    cx.fsync(fd);
    call!(cx, sendfile64(fd, source, null_mut(), 100_000));
    cx.fdatasync(fd);
    cx.show(fd);
    cx.show(source);
    cx.write_sync_show(fd);
    let append = cx.open(&cx.path("a"), O_RDWR | O_APPEND);
    call!(cx, sendfile(append, source, &raw mut offset, 100));
    cx.write_sync_show(fd);
}

fn sendfile_from_managed(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 100, 0);
    let target = cx.open(&cx.plain_path("target"), O_RDWR | O_CREAT);
    call!(cx, sendfile(target, fd, null_mut(), 5000));
    cx.show(target);
}

fn copy_range(cx: &Context) {
    let (fd, source) = (cx.file("a"), source(cx));
    cx.pwrite(fd, b'B', 100, 0);
    let (mut from, mut to) = (100_i64, 4000_i64);
    call!(cx, copy_file_range(source, &raw mut from, fd, &raw mut to, 6000, 0));
    cx.note(format_args!("from {from} to {to}"));
    cx.fsync(fd);
    call!(cx, copy_file_range(source, null_mut(), fd, null_mut(), 500, 0));
    cx.sync_show(fd);
    (from, to) = (0, 100);
    call!(cx, copy_file_range(fd, &raw mut from, fd, &raw mut to, 1000, 0));
    call!(cx, copy_file_range(fd, null_mut(), fd, null_mut(), 10, 1));
    (from, to) = (0, 30_000);
    call!(cx, copy_file_range(fd, &raw mut from, fd, &raw mut to, 1000, 0));
    cx.write_sync_show(fd);
    let append = cx.open(&cx.path("a"), O_RDWR | O_APPEND);
    call!(cx, copy_file_range(source, null_mut(), append, null_mut(), 10, 0));
    cx.write_sync_show(fd);
}

fn splice(cx: &Context, fd: c_int) {
    let [reader, writer] = pipe(cx);
    cx.write(writer, b'p', 3000);
    let mut offset = 1000_i64;
    call!(cx, splice(reader, null_mut(), fd, &raw mut offset, 2000, 0));
    cx.note(format_args!("offset {offset}"));
    cx.fsync(fd);
    call!(cx, splice(reader, null_mut(), fd, null_mut(), 2000, 0));
    cx.sync_show(fd);
    cx.write_sync_show(fd);
    let append = cx.open(&cx.path("a"), O_RDWR | O_APPEND);
    cx.write(writer, b'q', 10);
    call!(cx, splice(reader, null_mut(), append, null_mut(), 10, 0));
}

/// User pages put into a pipe, the pipe spliced into the file.
fn vmsplice(cx: &Context, fd: c_int) {
    let [reader, writer] = pipe(cx);
    let page = [b'v'; 5000];
    let part = libc::iovec { iov_base: page.as_ptr().cast_mut().cast(), iov_len: page.len() };
    call!(cx, vmsplice(writer, &raw const part, 1, 0));
    cx.pwrite(fd, b'B', 100, 0);
    call!(cx, splice(reader, null_mut(), fd, null_mut(), 5000, 0));
    cx.sync_show(fd);
}

fn splice_from_managed(cx: &Context, fd: c_int) {
    let [reader, writer] = pipe(cx);
    cx.pwrite(fd, b'B', 100, 0);
    call!(cx, splice(fd, null_mut(), writer, null_mut(), 2000, 0));
    let mut buffer = [0_u8; 2000];
    call!(cx, read(reader, buffer.as_mut_ptr().cast(), 2000));
    cx.note(crate::trace::summary(&buffer));
}

fn reflink(cx: &Context) {
    let (fd, source) = (cx.file("a"), source(cx));
    cx.pwrite(fd, b'B', 100, 0);
    call!(cx, ioctl(fd, CLONE, source));
    cx.fsync(fd);
    cx.write_sync_show(fd);
}

/// Between two managed files, with logged writes on both sides before and after.
fn between_managed_files(cx: &Context) {
    let (a, b) = (cx.file("a"), cx.file("b"));
    for round in 0..3_u8 {
        cx.pwrite(a, b'0' + round, 3000, 0);
        cx.fsync(a);
        let (mut from, mut to) = (0_i64, i64::from(round) * 1000);
        call!(cx, copy_file_range(a, &raw mut from, b, &raw mut to, 2000, 0));
        cx.pwrite(b, b'x', 10, 500);
        cx.fsync(b);
        cx.fsync(b);
    }
    cx.show(a);
    cx.show(b);
}

family!("transfer" => on_a_file [
    sendfile_from_managed, splice, vmsplice, splice_from_managed,
], others [
    sendfile, copy_range, reflink, between_managed_files,
]);
