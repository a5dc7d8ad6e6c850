//! write and pwrite: lengths, offsets, aliases, bad addresses, errno.

use crate::cases::tools::half_mapped;
use crate::context::Context;
use std::ffi::{c_int, c_void};

fn overwrite(cx: &Context) {
    let fd = cx.file("a");
    cx.pwrite(fd, b'B', 4096, 0);
    cx.fsync(fd);
    cx.pwrite(fd, b'C', 1, 4095);
    cx.fdatasync(fd);
    cx.pwrite(fd, b'D', 10, 5000);
    cx.show(fd);
    cx.fsync(fd);
}

fn extend(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 100, 8192);
    cx.show(fd);
    cx.fsync(fd);
    cx.pwrite(fd, b'C', 8192, 8000);
    cx.sync_show(fd);
}

fn beyond_end_leaves_a_hole(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 10, 100_000);
    cx.sync_show(fd);
    cx.pwrite(fd, b'C', 10, 50_000);
    cx.sync_show(fd);
}

fn zero_length(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 0, 0);
    cx.pwrite(fd, b'B', 0, 1 << 20);
    cx.write(fd, b'B', 0);
    call!(cx, write(fd, std::ptr::null(), 0));
    call!(cx, pwrite(fd, std::ptr::null(), 0, 100));
    call!(cx, pwrite(fd, std::ptr::null(), 0, -1));
}

fn zeros_are_data(cx: &Context, fd: c_int) {
    cx.pwrite(fd, 0, 4096, 0);
    cx.pwrite(fd, 0, 8192, 8192);
    cx.sync_show(fd);
    cx.pwrite(fd, 0, 1, 8191);
    cx.sync_show(fd);
}

fn aliases(cx: &Context, fd: c_int) {
    let text = b"alias";
    let address = text.as_ptr().cast::<c_void>();
    call!(cx, pwrite64(fd, address, 5, 0));
    call_named!(
        cx,
        Number,
        "__pwrite64",
        fn(c_int, *const c_void, usize, i64) -> isize,
        (fd, address, 5, 10)
    );
    call_named!(
        cx,
        Number,
        "__libc_pwrite",
        fn(c_int, *const c_void, usize, i64) -> isize,
        (fd, address, 5, 20)
    );
    call_named!(cx, Number, "__write", fn(c_int, *const c_void, usize) -> isize, (fd, address, 5));
    call_named!(cx, Number, "__lseek", fn(c_int, i64, c_int) -> i64, (fd, 0, libc::SEEK_CUR));
    cx.sync_show(fd);
}

fn large(cx: &Context, fd: c_int) {
    for (fill, length, offset) in
        [(b'1', 1 << 20, 0), (b'2', (1 << 20) + 1, 4096), (b'3', 3 << 20, 12_345), (b'4', (8 << 20) + 7, 1)]
    {
        cx.pwrite(fd, fill, length, offset);
        cx.sync_show(fd);
    }
    cx.seek(fd, 100, libc::SEEK_SET);
    cx.write(fd, b'5', 5 << 20);
    cx.fdatasync(fd);
    cx.show(fd);
}

fn every_size(cx: &Context, fd: c_int) {
    let mut offset = 0;
    for (index, size) in
        [1, 7, 8, 63, 64, 65, 511, 512, 513, 4095, 4096, 4097, 65_535, 65_536, 65_537].into_iter().enumerate()
    {
        cx.pwrite(fd, b'a' + index as u8, size, offset);
        cx.fdatasync(fd);
        offset += size as i64 + 3;
    }
    cx.show(fd);
}

fn bad_offsets(cx: &Context, fd: c_int) {
    for offset in [-1, -4096, i64::MIN, i64::MAX, i64::MAX - 9, 1 << 60, (16_i64 << 40) - 4096] {
        cx.pwrite(fd, b'B', 10, offset);
    }
}

fn bad_addresses(cx: &Context, fd: c_int) {
    call!(cx, pwrite(fd, std::ptr::null(), 10, 0));
    call!(cx, pwrite(fd, 0x10 as *const c_void, 4096, 0));
    call!(cx, write(fd, usize::MAX as *const c_void, 10));
    call!(cx, write(fd, 0x10 as *const c_void, 2 << 20));
    call!(cx, pwrite(fd, std::ptr::dangling::<u8>().cast(), usize::MAX, 0));
    call!(cx, pwrite(fd, std::ptr::dangling::<u8>().cast(), isize::MAX as usize, 0));
}

/// The second page of the buffer is not readable: the kernel writes what it can.
fn half_mapped_buffer(cx: &Context, fd: c_int) {
    let pages = half_mapped();
    call!(cx, pwrite(fd, pages.cast(), 8192, 0));
    cx.show(fd);
    call!(cx, write(fd, pages.wrapping_add(100).cast(), 5000));
    cx.sync_show(fd);
    call!(cx, pwrite(fd, pages.wrapping_add(4096).cast(), 10, 0));
}

/// The buffer is a mapping of the very file that is written.
fn from_own_mapping(cx: &Context, fd: c_int) {
    let address =
        call!(cx, Address, mmap(std::ptr::null_mut(), 8192, libc::PROT_READ, libc::MAP_SHARED, fd, 0));
    call!(cx, pwrite(fd, address as *const c_void, 4096, 8192));
    cx.sync_show(fd);
}

fn seen_at_once(cx: &Context) {
    let fd = cx.file("a");
    let reader = cx.open(&cx.path("a"), libc::O_RDONLY);
    for fill in [b'B', b'C', b'D'] {
        cx.pwrite(fd, fill, 3000, 2000);
        cx.show(reader);
        cx.fsync(fd);
        cx.show(reader);
    }
}

fn moves_modification_time(cx: &Context) {
    let fd = cx.file("a");
    let past = [libc::timespec { tv_sec: 1_000_000, tv_nsec: 0 }; 2];
    call!(cx, futimens(fd, past.as_ptr()));
    cx.pwrite(fd, b'B', 10, 0);
    cx.note(format_args!("mtime moved: {}", modified(fd) > 1_000_000));
    cx.fsync(fd);
    call!(cx, futimens(fd, past.as_ptr()));
    cx.fsync(fd);
    cx.note(format_args!("mtime kept by fsync: {}", modified(fd) == 1_000_000));
}

fn modified(fd: c_int) -> i64 {
    // SAFETY: a zeroed stat is a valid out parameter.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        libc::fstat(fd, &raw mut stat);
        stat.st_mtime
    }
}

fn attributes_between_writes(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 10, 0);
    call!(cx, fchmod(fd, 0o4640));
    cx.fsync(fd);
    cx.pwrite(fd, b'C', 10, 10);
    call!(cx, chmod(cx.path("a").as_ptr(), 0o600));
    cx.fdatasync(fd);
}

/// A file made read-only after it was opened stays writable through the descriptor.
fn permissions_taken_away(cx: &Context) {
    let fd = cx.file("a");
    call!(cx, fchmod(fd, 0));
    cx.write_sync_show(fd);
    cx.write_sync_show(fd);
    call!(cx, fchmod(fd, 0o644));
}

family!("write" => on_a_file [
    extend, beyond_end_leaves_a_hole, zero_length, zeros_are_data, aliases, large, every_size, bad_offsets,
    bad_addresses, half_mapped_buffer, from_own_mapping, attributes_between_writes,
], others [
    overwrite, seen_at_once, moves_modification_time, permissions_taken_away,
]);
