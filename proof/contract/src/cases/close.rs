//! close, close_range, closefrom: afterwards the number is dead, and the file is not.

use crate::context::Context;
use libc::O_RDWR;
use std::ffi::{c_int, c_uint};

fn dead_afterwards(cx: &Context) {
    let fd = cx.file("a");
    cx.pwrite(fd, b'B', 100, 0);
    cx.close(fd);
    cx.pwrite(fd, b'C', 100, 0);
    cx.write(fd, b'C', 100);
    cx.fsync(fd);
    cx.fdatasync(fd);
    call!(cx, ftruncate(fd, 0));
    cx.close(fd);
    let fd = cx.open(&cx.path("a"), O_RDWR);
    cx.write_sync_show(fd);
    call_named!(cx, Number, "__close", fn(c_int) -> c_int, (fd));
    cx.fsync(fd);
}

/// Written through one descriptor, closed, synced through the next one.
fn synced_after_reopening(cx: &Context) {
    let fd = cx.file("a");
    cx.pwrite(fd, b'B', 5000, 0);
    cx.close(fd);
    let fd = cx.open(&cx.path("a"), O_RDWR);
    cx.fsync(fd);
    cx.close(fd);
    cx.show_path(&cx.path("a"));
}

fn range(cx: &Context) {
    let fd = cx.file("a");
    for number in [600, 601, 602, 603] {
        call!(cx, dup2(fd, number));
    }
    call!(cx, close_range(601, 602, 0));
    for number in [600, 601, 602, 603] {
        cx.write(number, b'r', 10);
        cx.fsync(number);
    }
    call!(cx, close_range(603, 600, 0));
    call!(cx, close_range(600, 603, 0x80));
    call!(cx, close_range(600, c_uint::MAX, 0));
    cx.write(600, b'r', 10);
    cx.write_sync_show(fd);
}

fn range_marks_close_on_exec(cx: &Context) {
    let fd = cx.file("a");
    call!(cx, dup2(fd, 600));
    call!(cx, close_range(600, 700, libc::CLOSE_RANGE_CLOEXEC as c_int));
    call!(cx, fcntl(600, libc::F_GETFD));
    call!(cx, fcntl(fd, libc::F_GETFD));
    cx.write_sync_show(600);
    call!(cx, close_range(600, 700, libc::CLOSE_RANGE_UNSHARE as c_int));
    cx.write_sync_show(fd);
}

/// Every descriptor above 2 goes, whoever made it; then life goes on.
fn everything_by_close_range(cx: &Context) {
    let fd = cx.file("a");
    cx.pwrite(fd, b'B', 100, 0);
    call!(cx, close_range(3, c_uint::MAX, 0));
    cx.fsync(fd);
    let fd = cx.open(&cx.path("a"), O_RDWR);
    cx.write_sync_show(fd);
    cx.write_sync_show(fd);
    let other = cx.file("b");
    cx.write_sync_show(other);
}

fn everything_by_closefrom(cx: &Context) {
    let fd = cx.file("a");
    cx.pwrite(fd, b'B', 100, 0);
    let Some(address) = crate::call::symbol(c"closefrom") else {
        return cx.note("closefrom: no such symbol");
    };
    // SAFETY: glibc's own signature. Returns nothing to trace.
    let closefrom = unsafe { std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn(c_int)>(address) };
    // SAFETY: closes descriptors only, none of which this process uses but through cases.
    unsafe { closefrom(3) };
    cx.fsync(fd);
    let fd = cx.open(&cx.path("a"), O_RDWR);
    cx.write_sync_show(fd);
    let other = cx.file("b");
    cx.write_sync_show(other);
}

/// The way of daemons: one close for every number up to the limit.
fn everything_one_by_one(cx: &Context) {
    let fd = cx.file("a");
    for number in 3..2000 {
        // SAFETY: plain call; most numbers are not open.
        unsafe { libc::close(number) };
    }
    cx.fsync(fd);
    let fd = cx.open(&cx.path("a"), O_RDWR);
    cx.write_sync_show(fd);
    cx.in_child(|| {
        cx.write_sync_show(fd);
        0
    });
    cx.write_sync_show(fd);
}

fn table_full(cx: &Context, fd: c_int) {
    cx.file("b");
    let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
    call!(cx, setrlimit(libc::RLIMIT_NOFILE, &raw const limit));
    let mut last = 0;
    while last >= 0 {
        last = crate::context::open_quietly(&cx.path("b"), O_RDWR);
    }
    cx.note(format_args!("then: {}", crate::trace::errno_name(crate::call::errno())));
    call!(cx, dup(fd));
    cx.write_sync_show(fd);
    cx.write_sync_show(63);
    call!(cx, rename(cx.path("b").as_ptr(), cx.path("c").as_ptr()));
    call!(cx, truncate(cx.path("a").as_ptr(), 77));
    call!(cx, unlink(cx.path("c").as_ptr()));
    cx.write_sync_show(63);
}

family!("close" => on_a_file [
    table_full,
], others [
    dead_afterwards, synced_after_reopening, range, range_marks_close_on_exec, everything_by_close_range,
    everything_by_closefrom, everything_one_by_one,
]);
