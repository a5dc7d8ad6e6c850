//! SEEK_DATA and SEEK_HOLE, and reads of what was never written.

use crate::context::Context;
use libc::{SEEK_DATA, SEEK_HOLE};
use std::ffi::c_int;

/// The file's data and holes, as lseek reports them.
fn show_extents(cx: &Context, fd: c_int) {
    let mut at = 0_i64;
    for _ in 0..20 {
        // SAFETY: plain calls.
        let (data, hole) = unsafe {
            let data = libc::lseek(fd, at, SEEK_DATA);
            (data, if data < 0 { -1 } else { libc::lseek(fd, data, SEEK_HOLE) })
        };
        cx.note(format_args!("data {data} hole {hole}"));
        if hole < 0 {
            break;
        }
        at = hole;
    }
    cx.seek(fd, 0, libc::SEEK_SET);
}

fn sparse_writes(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 4096, 100 * 4096);
    cx.pwrite(fd, b'C', 100, 200 * 4096 + 17);
    show_extents(cx, fd);
    cx.fsync(fd);
    show_extents(cx, fd);
    call!(cx, ftruncate(fd, 300 * 4096));
    cx.fsync(fd);
    show_extents(cx, fd);
    cx.pwrite(fd, b'D', 1, 250 * 4096);
    cx.fsync(fd);
    show_extents(cx, fd);
    cx.show(fd);
}

fn written_zeros(cx: &Context, fd: c_int) {
    cx.pwrite(fd, 0, 40_960, 20 * 4096);
    cx.fsync(fd);
    show_extents(cx, fd);
}

fn punched(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 65_536, 0);
    cx.fsync(fd);
    call!(cx, fallocate(fd, libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, 8192, 16_384));
    cx.fsync(fd);
    show_extents(cx, fd);
    cx.pwrite(fd, b'C', 100, 12_288);
    cx.fsync(fd);
    show_extents(cx, fd);
    cx.show(fd);
}

fn errors(cx: &Context, fd: c_int) {
    cx.seek(fd, 1 << 30, SEEK_DATA);
    cx.seek(fd, 1 << 30, SEEK_HOLE);
    cx.seek(fd, -1, SEEK_DATA);
}

family!("holes" => on_a_file [sparse_writes, written_zeros, punched, errors]);
