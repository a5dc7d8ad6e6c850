//! aio_write, aio_fsync, lio_listio: glibc writes from threads of its own, out of sight.

use crate::context::Context;
use libc::aiocb;
use std::ffi::c_int;

fn block(fd: c_int, page: &mut [u8], offset: i64) -> aiocb {
    // SAFETY: a zeroed aiocb is valid: no notification.
    let mut block: aiocb = unsafe { std::mem::zeroed() };
    block.aio_fildes = fd;
    block.aio_buf = page.as_mut_ptr().cast();
    block.aio_nbytes = page.len();
    block.aio_offset = offset;
    block.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
    block
}

fn finish(cx: &Context, block: &mut aiocb) {
    let list = [std::ptr::from_ref(block)];
    let patience = libc::timespec { tv_sec: 5, tv_nsec: 0 };
    // SAFETY: the block stays where it is until aio_error no longer says EINPROGRESS.
    unsafe {
        while libc::aio_error(block) == libc::EINPROGRESS {
            libc::aio_suspend(list.as_ptr(), 1, &raw const patience);
        }
    }
    call!(cx, ErrorNumber, aio_error(block));
    call!(cx, aio_return(block));
}

fn writes(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 1000, 0);
    let mut page = [b'a'; 3000];
    for offset in [500, 10_000] {
        let mut block = block(fd, &mut page, offset);
        call!(cx, aio_write(&raw mut block));
        finish(cx, &mut block);
        cx.fsync(fd);
        cx.pwrite(fd, b'C', 10, offset + 20);
        cx.fsync(fd);
    }
    cx.show(fd);
}

fn fsyncs(cx: &Context, fd: c_int) {
    for kind in [libc::O_SYNC, libc::O_DSYNC] {
        cx.pwrite(fd, b'B', 1000, 0);
        let mut block = block(fd, &mut [], 0);
        call!(cx, aio_fsync(kind, &raw mut block));
        finish(cx, &mut block);
    }
    let mut wrong = block(fd, &mut [], 0);
    call!(cx, aio_fsync(77, &raw mut wrong));
}

fn lists(cx: &Context, fd: c_int) {
    let (mut one, mut two) = ([b'1'; 2000], [b'2'; 2000]);
    let (mut first, mut second) = (block(fd, &mut one, 100), block(fd, &mut two, 9000));
    first.aio_lio_opcode = libc::LIO_WRITE;
    second.aio_lio_opcode = libc::LIO_WRITE;
    let mut list = [&raw mut first, &raw mut second];
    call!(cx, lio_listio(libc::LIO_WAIT, list.as_mut_ptr(), 2, std::ptr::null_mut()));
    finish(cx, &mut first);
    finish(cx, &mut second);
    cx.fsync(fd);
}

fn errors(cx: &Context, fd: c_int) {
    let mut page = [b'e'; 10];
    let read_only = cx.open(&cx.path("a"), libc::O_RDONLY);
    for bad in [-1, read_only] {
        let mut block = block(bad, &mut page, 0);
        // Whether a bad descriptor is found at submission or later is glibc's affair; that it is found is ours.
        call!(cx, aio_write(&raw mut block));
        finish(cx, &mut block);
    }
    let mut negative = block(fd, &mut page, -5);
    call!(cx, aio_write(&raw mut negative));
    finish(cx, &mut negative);
}

family!("posix_aio" => on_a_file [writes, fsyncs, lists, errors]);
