//! Every call on descriptors it cannot work on: the kernel's error, never success, never a crash.

use crate::context::Context;
use libc::{AT_FDCWD, O_RDONLY, O_RDWR};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

/// Every interposed call that takes a descriptor, on `fd`. Nothing here may harm a good one.
fn everything(cx: &Context, fd: c_int) {
    writes(cx, fd);
    call!(cx, fsync(fd));
    call!(cx, fdatasync(fd));
    call!(cx, sync_file_range(fd, 0, 100, libc::SYNC_FILE_RANGE_WRITE));
    call!(cx, syncfs(fd));
    call!(cx, ftruncate(fd, 10));
    call!(cx, ftruncate64(fd, 10));
    call!(cx, fallocate(fd, 0, 0, 10));
    call!(cx, ErrorNumber, posix_fallocate(fd, 0, 10));
    call!(cx, ErrorNumber, posix_fadvise(fd, 0, 10, libc::POSIX_FADV_DONTNEED));
    call!(cx, lseek(fd, 0, libc::SEEK_CUR));
    call!(cx, flock(fd, libc::LOCK_SH | libc::LOCK_NB));
    call!(cx, Address, mmap(null_mut(), 4096, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd, 0));
    call!(cx, Address, mmap(null_mut(), 4096, libc::PROT_READ, libc::MAP_SHARED, fd, 0));
}

fn writes(cx: &Context, fd: c_int) {
    let text = c"bad".as_ptr();
    let part = libc::iovec { iov_base: text.cast_mut().cast(), iov_len: 3 };
    call!(cx, write(fd, text.cast(), 3));
    call!(cx, write(fd, text.cast(), 0));
    call!(cx, pwrite(fd, text.cast(), 3, 0));
    call!(cx, pwrite64(fd, text.cast(), 3, 0));
    call!(cx, pwrite(fd, text.cast(), 0, 0));
    call!(cx, writev(fd, &raw const part, 1));
    call!(cx, pwritev(fd, &raw const part, 1, 0));
    call!(cx, pwritev2(fd, &raw const part, 1, 0, libc::RWF_DSYNC));
    call!(cx, pwritev2(fd, &raw const part, 1, -1, 0));
    cx.dprintf(fd, c"text");
    call!(cx, sendfile(fd, fd, null_mut(), 3));
    call!(cx, copy_file_range(fd, null_mut(), fd, null_mut(), 3, 0));
    call!(cx, splice(fd, null_mut(), fd, null_mut(), 3, 0));
    call!(cx, vmsplice(fd, &raw const part, 1, libc::SPLICE_F_NONBLOCK));
}

fn closes(cx: &Context, fd: c_int) {
    call!(cx, dup(fd));
    call!(cx, dup2(fd, 700));
    call!(cx, dup3(fd, 700, libc::O_CLOEXEC));
    call!(cx, fcntl(fd, libc::F_GETFL));
    call!(cx, fcntl(fd, libc::F_DUPFD, 700));
    call!(cx, fcntl(fd, libc::F_SETFL, libc::O_APPEND));
    call!(cx, close(fd));
    call_named!(cx, Address, "fdopen", fn(c_int, *const c_char) -> *mut c_void, (fd, c"w".as_ptr()));
}

fn numbers_that_are_not_open(cx: &Context) {
    let good = cx.file("a");
    // SAFETY: plain calls.
    let closed = unsafe { libc::dup2(good, 650) };
    // SAFETY: as above.
    unsafe { libc::close(closed) };
    for fd in [closed, -1, -2, c_int::MIN, c_int::MAX, 1 << 20, 65_536, AT_FDCWD] {
        cx.note(format_args!("descriptor {fd}:"));
        everything(cx, fd);
        closes(cx, fd);
    }
    cx.write_sync_show(good);
}

fn read_only(cx: &Context, good: c_int) {
    let fd = cx.open(&cx.path("a"), O_RDONLY);
    everything(cx, fd);
    let mut offset = 0;
    call!(cx, sendfile(fd, good, &raw mut offset, 3));
}

fn pipes(cx: &Context, _: c_int) {
    let mut ends = [-1; 2];
    call!(cx, pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK));
    everything(cx, ends[0]);
    everything(cx, ends[1]);
}

/// As everywhere, without the calls that would block or send.
fn sockets(cx: &Context, _: c_int) {
    let mut pair = [-1; 2];
    call!(cx, socketpair(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0, pair.as_mut_ptr()));
    everything(cx, pair[0]);
}

fn directory(cx: &Context, _: c_int) {
    let fd = cx.open(&cx.directory(), O_RDONLY);
    writes(cx, fd);
    call!(cx, fsync(fd));
    call!(cx, fdatasync(fd));
    call!(cx, ftruncate(fd, 10));
    call!(cx, fallocate(fd, 0, 0, 10));
}

fn devices_and_anonymous_files(cx: &Context, _: c_int) {
    let null = cx.open(c"/dev/null", O_RDWR);
    everything(cx, null);
    let full = cx.open(c"/dev/full", O_RDWR);
    writes(cx, full);
    let event = call!(cx, Descriptor, eventfd(0, libc::EFD_NONBLOCK)) as c_int;
    everything(cx, event);
    let poll = call!(cx, Descriptor, epoll_create1(0)) as c_int;
    everything(cx, poll);
    let memory = call!(cx, Descriptor, memfd_create(c"contract".as_ptr(), 0)) as c_int;
    everything(cx, memory);
    cx.show(memory);
}

/// Errors for one descriptor must not make the others forget anything.
fn errors_between_good_writes(cx: &Context, fd: c_int) {
    for round in 0..3 {
        cx.pwrite(fd, b'g', 100, round * 50);
        cx.pwrite(-1, b'b', 100, 0);
        cx.fsync(-1);
        cx.fsync(fd);
        cx.pwrite(fd, b'g', 100, -1);
        cx.fsync(fd);
    }
    cx.show(fd);
}

family!("bad_descriptor" => on_a_file [
    read_only, pipes, sockets, directory, devices_and_anonymous_files, errors_between_good_writes,
], others [
    numbers_that_are_not_open,
]);
