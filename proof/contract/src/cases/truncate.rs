//! truncate and ftruncate, alone and among writes.

use crate::context::Context;
use libc::{O_RDONLY, O_RDWR};
use std::ffi::c_int;

fn shrink_and_grow(cx: &Context, fd: c_int) {
    for length in [5000, 100, 0, 10_000, 10_001, 4096] {
        call!(cx, ftruncate(fd, length));
        cx.show(fd);
        cx.fsync(fd);
        cx.pwrite(fd, b'B', 10, 50);
        cx.fdatasync(fd);
    }
    cx.show(fd);
}

fn aliases(cx: &Context, fd: c_int) {
    let path = cx.path("a");
    call!(cx, ftruncate64(fd, 7000));
    call!(cx, truncate(path.as_ptr(), 6000));
    call!(cx, truncate64(path.as_ptr(), 5000));
}

/// What was cut off must not come back when the file grows again.
fn cut_bytes_stay_gone(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 20_000, 0);
    cx.fsync(fd);
    call!(cx, ftruncate(fd, 3000));
    cx.pwrite(fd, b'C', 10, 15_000);
    cx.sync_show(fd);
    call!(cx, truncate(cx.path("a").as_ptr(), 0));
    call!(cx, ftruncate(fd, 9000));
    cx.sync_show(fd);
}

fn below_the_offset(cx: &Context, fd: c_int) {
    cx.seek(fd, 8000, libc::SEEK_SET);
    call!(cx, ftruncate(fd, 100));
    cx.write(fd, b'B', 10);
    cx.sync_show(fd);
}

fn errors(cx: &Context, fd: c_int) {
    let read_only = cx.open(&cx.path("a"), O_RDONLY);
    let directory = cx.open(&cx.directory(), O_RDONLY);
    call!(cx, ftruncate(read_only, 0));
    call!(cx, ftruncate(directory, 0));
    call!(cx, ftruncate(fd, -1));
    call!(cx, ftruncate(fd, i64::MAX));
    call!(cx, truncate(cx.path("a").as_ptr(), -1));
    call!(cx, truncate(cx.path("missing").as_ptr(), 0));
    call!(cx, truncate(cx.directory().as_ptr(), 0));
    call!(cx, truncate(std::ptr::null(), 0));
}

fn by_another_descriptor(cx: &Context) {
    let one = cx.file("a");
    let two = cx.open(&cx.path("a"), O_RDWR);
    cx.pwrite(one, b'1', 10_000, 0);
    call!(cx, ftruncate(two, 500));
    cx.pwrite(one, b'2', 10, 1000);
    cx.fsync(one);
    cx.show(two);
}

fn by_another_program(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 9000, 0);
    cx.fsync(fd);
    cx.executed(&["truncate", &cx.path_text("a"), "123"]);
    cx.show(fd);
}

fn many_in_turn(cx: &Context, fd: c_int) {
    for round in 0..50_i64 {
        let fill = b'a' + (round % 26) as u8;
        // SAFETY: the buffer outlives the call.
        unsafe {
            let buffer = [fill; 777];
            let offset = round * 331 % 9000;
            assert_eq!(libc::pwrite(fd, buffer.as_ptr().cast(), 777, offset), 777);
            assert_eq!(libc::ftruncate(fd, round * 577 % 12_000), 0);
            if round % 5 == 0 {
                assert_eq!(libc::fsync(fd), 0 as c_int);
            }
        }
    }
    cx.show(fd);
}

family!("truncate" => on_a_file [
    shrink_and_grow, aliases, cut_bytes_stay_gone, below_the_offset, errors, by_another_program,
    many_in_turn,
], others [
    by_another_descriptor,
]);
