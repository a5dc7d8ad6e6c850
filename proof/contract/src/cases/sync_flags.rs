//! O_DSYNC, O_SYNC and what F_GETFL tells about a descriptor.

use crate::context::Context;
use libc::{F_GETFL, F_SETFL, O_APPEND, O_DIRECT, O_DSYNC, O_NOATIME, O_NONBLOCK, O_RDWR, O_SYNC};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

fn show_flags(cx: &Context, fd: c_int) {
    // SAFETY: plain call.
    let flags = unsafe { libc::fcntl(fd, F_GETFL) };
    cx.note(format_args!("flags {flags:#o}"));
}

fn flags_are_kept(cx: &Context) {
    cx.file("a");
    for flags in [
        0,
        O_DSYNC,
        O_SYNC,
        O_APPEND,
        O_DSYNC | O_APPEND,
        O_DIRECT,
        O_DIRECT | O_DSYNC,
        O_NOATIME,
        O_NONBLOCK,
    ] {
        let fd = cx.open(&cx.path("a"), O_RDWR | flags);
        show_flags(cx, fd);
        call!(cx, fcntl(fd, libc::F_GETFD));
        cx.close(fd);
    }
}

fn setting_flags(cx: &Context, fd: c_int) {
    for flags in [O_DSYNC, O_SYNC, O_APPEND | O_NONBLOCK, O_DIRECT, 0] {
        call!(cx, fcntl(fd, F_SETFL, flags));
        show_flags(cx, fd);
    }
}

fn synchronous_writes(cx: &Context, flags: c_int) {
    let fd = cx.file_with("a", flags);
    show_flags(cx, fd);
    cx.pwrite(fd, b'B', 4096, 0);
    cx.write(fd, b'C', 100);
    cx.pwrite(fd, b'D', 5000, 20_000);
    let part = libc::iovec { iov_base: c"vector".as_ptr().cast_mut().cast(), iov_len: 6 };
    call!(cx, pwritev(fd, &raw const part, 1, 300));
    call!(cx, writev(fd, &raw const part, 1));
    cx.show(fd);
    call!(cx, ftruncate(fd, 500));
    cx.write_sync_show(fd);
}

fn odsync(cx: &Context) {
    synchronous_writes(cx, O_DSYNC);
}

fn osync(cx: &Context) {
    synchronous_writes(cx, O_SYNC);
}

fn odsync_append(cx: &Context) {
    synchronous_writes(cx, O_DSYNC | O_APPEND);
}

/// PostgreSQL's open_datasync on a new segment: created, filled, then overwritten through O_DSYNC.
fn odsync_on_a_new_file(cx: &Context) {
    let fd = cx.open(&cx.path("new"), O_RDWR | O_DSYNC | libc::O_CREAT | libc::O_EXCL);
    for page in 0..4 {
        cx.pwrite(fd, b'n', 8192, page * 8192);
    }
    cx.fsync(fd);
    for page in 0..4 {
        cx.pwrite(fd, b'o', 8192, page * 8192);
    }
    cx.show(fd);
}

/// Whoever reads or maps the file at every moment has none of what was there before, once a write has returned.
fn odsync_is_seen_at_once(cx: &Context) {
    const ROUNDS: u32 = 3000;
    let path = cx.path("new");
    let writer = cx.open(&path, O_RDWR | O_DSYNC | libc::O_CREAT);
    cx.pwrite(writer, b'n', 8192, 0);
    let reader = cx.open(&path, libc::O_RDONLY);
    let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED);
    let map =
        call!(cx, Address, mmap(std::ptr::null_mut(), 8192, read, shared, reader, 0)) as *const AtomicU32;
    // SAFETY: mapped until the end of this, and inside the file.
    let mapped = unsafe { &*map };
    let is_over = AtomicBool::new(false);
    let stale = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                mapped.load(Relaxed);
            }
        });
        let stale = (1..=ROUNDS).find(|round| {
            let (number, mut seen) = (round.to_ne_bytes(), [0; 4]);
            // SAFETY: plain calls on buffers that outlive them.
            let done = unsafe {
                libc::pwrite(writer, number.as_ptr().cast(), 4, 0) == 4
                    && libc::pread(reader, seen.as_mut_ptr().cast(), 4, 0) == 4
            };
            !done || seen != number || mapped.load(Relaxed) != *round
        });
        is_over.store(true, Relaxed);
        stale
    });
    cx.note(format_args!("not seen: {stale:?}"));
    call!(cx, munmap(map.cast_mut().cast(), 8192));
    cx.show(reader);
    // Once more without it, by whatever way that goes.
    cx.close(writer);
    cx.close(reader);
    let fd = cx.open(&path, O_RDWR);
    cx.pwrite(fd, b'p', 4096, 2048);
    cx.write_sync_show(fd);
}

family!("sync_flags" => on_a_file [
    setting_flags,
], others [
    flags_are_kept, odsync, osync, odsync_append, odsync_on_a_new_file, odsync_is_seen_at_once,
]);
