//! writev, pwritev, pwritev2: flags, counts, strange vectors.

use crate::cases::tools::half_mapped;
use crate::context::Context;
use libc::iovec;
use std::ffi::c_int;

fn vector(parts: &[&[u8]]) -> Vec<iovec> {
    parts
        .iter()
        .map(|part| iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() })
        .collect()
}

fn families(cx: &Context, fd: c_int) {
    let parts = vector(&[b"one", b"", b"three", &[b'4'; 5000]]);
    let (at, count) = (parts.as_ptr(), parts.len() as c_int);
    call!(cx, writev(fd, at, count));
    cx.seek(fd, 0, libc::SEEK_CUR);
    call!(cx, pwritev(fd, at, count, 100));
    call!(cx, pwritev64(fd, at, count, 7000));
    call!(cx, pwritev2(fd, at, count, 20_000, 0));
    call_named!(
        cx,
        Number,
        "pwritev64v2",
        fn(c_int, *const iovec, c_int, i64, c_int) -> isize,
        (fd, at, count, 30_000, 0)
    );
    cx.seek(fd, 0, libc::SEEK_CUR);
    cx.sync_show(fd);
}

fn pwritev2_flags(cx: &Context, fd: c_int) {
    let parts = vector(&[b"flagged ", b"write"]);
    let at = parts.as_ptr();
    for (index, flags) in [libc::RWF_DSYNC, libc::RWF_SYNC, libc::RWF_HIPRI, libc::RWF_DSYNC | libc::RWF_SYNC]
        .into_iter()
        .enumerate()
    {
        call!(cx, pwritev2(fd, at, 2, index as i64 * 100, flags));
    }
    cx.show(fd);
    call!(cx, pwritev2(fd, at, 2, 0, libc::RWF_APPEND));
    call!(cx, pwritev2(fd, at, 2, 0, libc::RWF_APPEND | libc::RWF_DSYNC));
    cx.show(fd);
    call!(cx, pwritev2(fd, at, 2, 0, 1 << 30));
    call!(cx, pwritev2(fd, at, 2, 0, -1));
}

/// Offset -1 means: at the descriptor's offset, and move it.
fn pwritev2_at_current_offset(cx: &Context, fd: c_int) {
    let parts = vector(&[b"current"]);
    cx.seek(fd, 1000, libc::SEEK_SET);
    for flags in [0, libc::RWF_DSYNC, libc::RWF_APPEND, libc::RWF_APPEND | libc::RWF_SYNC] {
        call!(cx, pwritev2(fd, parts.as_ptr(), 1, -1, flags));
        cx.seek(fd, 0, libc::SEEK_CUR);
    }
    call!(cx, pwritev2(fd, parts.as_ptr(), 1, -2, 0));
    call!(cx, pwritev(fd, parts.as_ptr(), 1, -1));
}

fn counts(cx: &Context, fd: c_int) {
    let byte = *b"v";
    let many = vec![iovec { iov_base: byte.as_ptr().cast_mut().cast(), iov_len: 1 }; 1025];
    for count in [0, 1, 1023, 1024, 1025, -1, c_int::MAX] {
        call!(cx, pwritev(fd, many.as_ptr(), count, 10));
        call!(cx, writev(fd, many.as_ptr(), count));
        call!(cx, pwritev2(fd, many.as_ptr(), count, 5000, libc::RWF_DSYNC));
    }
    call!(cx, writev(fd, std::ptr::null(), 0));
    cx.sync_show(fd);
}

fn large_vectors(cx: &Context, fd: c_int) {
    let (one, two) = (vec![b'1'; 700_000], vec![b'2'; 900_001]);
    let parts = vector(&[&one, &two, &one]);
    call!(cx, pwritev(fd, parts.as_ptr(), 3, 777));
    cx.fsync(fd);
    call!(cx, writev(fd, parts.as_ptr(), 3));
    cx.sync_show(fd);
}

fn bad_vectors(cx: &Context, fd: c_int) {
    call!(cx, pwritev(fd, std::ptr::null(), 1, 0));
    call!(cx, writev(fd, 0x10 as *const iovec, 2));
    let good = b"good";
    let mut parts = vector(&[good, good]);
    parts[1].iov_base = 0x10 as *mut _;
    call!(cx, pwritev(fd, parts.as_ptr(), 2, 100));
    call!(cx, writev(fd, parts.as_ptr(), 2));
    parts[1].iov_len = usize::MAX;
    call!(cx, pwritev(fd, parts.as_ptr(), 2, 100));
    parts[1].iov_len = isize::MAX as usize;
    call!(cx, writev(fd, parts.as_ptr(), 2));
}

fn half_mapped_part(cx: &Context, fd: c_int) {
    let good = b"good";
    let mut parts = vector(&[good, good, good]);
    parts[1] = iovec { iov_base: half_mapped().cast(), iov_len: 8192 };
    call!(cx, pwritev(fd, parts.as_ptr(), 3, 100));
    cx.show(fd);
    call!(cx, writev(fd, parts.as_ptr(), 3));
}

fn bad_offsets(cx: &Context, fd: c_int) {
    let parts = vector(&[b"offset"]);
    for offset in [-1, -5, i64::MIN, i64::MAX, 1 << 60] {
        call!(cx, pwritev(fd, parts.as_ptr(), 1, offset));
    }
}

fn only_empty_parts(cx: &Context, fd: c_int) {
    let parts = vector(&[b"", b"", b""]);
    call!(cx, pwritev(fd, parts.as_ptr(), 3, 1 << 20));
    call!(cx, writev(fd, parts.as_ptr(), 3));
}

family!("vectored" => on_a_file [
    families, pwritev2_flags, pwritev2_at_current_offset, counts, large_vectors, bad_vectors,
    half_mapped_part, bad_offsets, only_empty_parts,
]);
