//! fallocate in every mode, posix_fallocate, and writes around them.

use crate::context::Context;
use libc::{
    FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE,
    FALLOC_FL_UNSHARE_RANGE, FALLOC_FL_ZERO_RANGE,
};
use std::ffi::c_int;

/// Space after a sync: what fallocate really did. Exact block counts depend on how the file system
/// laid the file out; whether about 60 KiB are reserved does not.
fn show_blocks(cx: &Context, fd: c_int) {
    cx.fsync(fd);
    // SAFETY: a zeroed stat is a valid out parameter.
    let blocks = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        libc::fstat(fd, &raw mut stat);
        stat.st_blocks
    };
    cx.note(format_args!("60 KiB reserved: {}", blocks * 512 >= 60_000));
    cx.show(fd);
}

fn in_mode(cx: &Context, mode: c_int, offset: i64, length: i64) {
    let fd = cx.file("a");
    cx.pwrite(fd, b'B', 16_384, 4096);
    cx.fsync(fd);
    call!(cx, fallocate(fd, mode, offset, length));
    show_blocks(cx, fd);
    cx.pwrite(fd, b'C', 100, 8000);
    cx.fsync(fd);
    call!(cx, fallocate64(fd, mode, offset, length));
    cx.pwrite(fd, b'D', 100, 40_000);
    show_blocks(cx, fd);
}

/// A case for each mode, with its offset and length.
macro_rules! in_modes {
    ($($case:ident($mode:expr, $offset:expr, $length:expr);)*) => {$(
        fn $case(cx: &Context) {
            in_mode(cx, $mode, $offset, $length);
        }
    )*};
}

in_modes! {
    plain(0, 0, 65_536);
    keep_size(FALLOC_FL_KEEP_SIZE, 0, 65_536);
    punch_hole(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 5000, 6000);
    zero_range(FALLOC_FL_ZERO_RANGE, 6000, 30_000);
    zero_range_keep_size(FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 6000, 30_000);
    collapse_range(FALLOC_FL_COLLAPSE_RANGE, 4096, 4096);
    insert_range(FALLOC_FL_INSERT_RANGE, 4096, 8192);
    unshare_range(FALLOC_FL_UNSHARE_RANGE, 0, 8192);
}

fn errors(cx: &Context, fd: c_int) {
    let read_only = cx.open(&cx.path("a"), libc::O_RDONLY);
    call!(cx, fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 4096));
    call!(cx, fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 1, 4096));
    call!(cx, fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 1 << 20));
    call!(cx, fallocate(fd, FALLOC_FL_INSERT_RANGE, 1 << 20, 4096));
    call!(cx, fallocate(fd, 0x4000_0000, 0, 4096));
    call!(cx, fallocate(fd, 0, -1, 4096));
    call!(cx, fallocate(fd, 0, 0, 0));
    call!(cx, fallocate(fd, 0, 0, -4096));
    call!(cx, fallocate(fd, 0, i64::MAX, 4096));
    call!(cx, fallocate(read_only, 0, 0, 4096));
}

fn posix(cx: &Context, fd: c_int) {
    let read_only = cx.open(&cx.path("a"), libc::O_RDONLY);
    call!(cx, ErrorNumber, posix_fallocate(fd, 0, 20_000));
    show_blocks(cx, fd);
    call!(cx, ErrorNumber, posix_fallocate64(fd, 10_000, 30_000));
    cx.pwrite(fd, b'B', 100, 15_000);
    show_blocks(cx, fd);
    call!(cx, ErrorNumber, posix_fallocate(fd, -1, 100));
    call!(cx, ErrorNumber, posix_fallocate(fd, 0, 0));
    call!(cx, ErrorNumber, posix_fallocate(read_only, 0, 100));
    call!(cx, ErrorNumber, posix_fallocate(-1, 0, 100));
}

/// RocksDB's log: reserve, append, cut at close. MariaDB's: allocate, then overwrite.
fn reserve_append_cut(cx: &Context) {
    let fd = cx.file("a");
    call!(cx, fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 1 << 20));
    cx.seek(fd, 0, libc::SEEK_END);
    for fill in [b'1', b'2', b'3'] {
        cx.write(fd, fill, 5000);
        cx.fdatasync(fd);
    }
    call!(cx, ftruncate(fd, 8192 + 15_000));
    show_blocks(cx, fd);
}

family!("fallocate" => on_a_file [
    errors, posix,
], others [
    plain, keep_size, punch_hole, zero_range, zero_range_keep_size, collapse_range, insert_range,
    unshare_range, reserve_append_cut,
]);
