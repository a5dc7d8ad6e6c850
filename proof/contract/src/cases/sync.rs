//! fsync and its relatives: on every kind of descriptor, in processes that did not write.

use crate::context::{Context, open_quietly};
use libc::{
    O_RDONLY, O_RDWR, SYNC_FILE_RANGE_WAIT_AFTER, SYNC_FILE_RANGE_WAIT_BEFORE, SYNC_FILE_RANGE_WRITE,
};
use std::ffi::c_int;

fn sync_in_other_program(cx: &Context) {
    cx.executed(&["sync", &cx.path_text("a")]);
}

fn every_call(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 100, 0);
    cx.fsync(fd);
    cx.pwrite(fd, b'C', 100, 0);
    cx.fdatasync(fd);
    cx.pwrite(fd, b'D', 100, 0);
    call!(cx, syncfs(fd));
    cx.pwrite(fd, b'E', 100, 0);
    // SAFETY: writes everything back; returns nothing.
    unsafe { libc::sync() };
    cx.fsync(fd);
    cx.sync_show(fd);
}

fn file_ranges(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 100, 0);
    let all = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    for flags in [0, SYNC_FILE_RANGE_WRITE, all, 0x100] {
        call!(cx, sync_file_range(fd, 0, 0, flags));
        call!(cx, sync_file_range(fd, 4096, 4096, flags));
    }
    call!(cx, sync_file_range(fd, -1, 0, 0));
    call!(cx, sync_file_range(fd, 0, -1, 0));
}

fn through_a_read_only_descriptor(cx: &Context) {
    let fd = cx.file("a");
    let reader = cx.open(&cx.path("a"), O_RDONLY);
    for fill in [b'1', b'2', b'3'] {
        cx.pwrite(fd, fill, 1000, 0);
        cx.fsync(reader);
        cx.fdatasync(reader);
    }
    cx.show(reader);
}

fn in_a_process_that_did_not_write(cx: &Context) {
    let fd = cx.file("a");
    for fill in [b'1', b'2'] {
        cx.pwrite(fd, fill, 1000, 0);
        sync_in_other_program(cx);
    }
    cx.pwrite(fd, b'3', 1000, 0);
    cx.close(fd);
    sync_in_other_program(cx);
    cx.show_path(&cx.path("a"));
}

fn directories(cx: &Context, _: c_int) {
    let directory = cx.open(&cx.directory(), O_RDONLY | libc::O_DIRECTORY);
    cx.fsync(directory);
    cx.fdatasync(directory);
    call!(cx, syncfs(directory));
    cx.close(directory);
    cx.fsync(directory);
}

fn never_written(cx: &Context) {
    let fd = cx.file("a");
    let fresh = cx.open(&cx.path("fresh"), O_RDWR | libc::O_CREAT);
    for _ in 0..3 {
        cx.fsync(fd);
        cx.fdatasync(fresh);
    }
    cx.show(fresh);
}

fn writers_and_syncers_apart(cx: &Context, fd: c_int) {
    let path = cx.path("a");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let own = open_quietly(&path, O_RDONLY);
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                // SAFETY: plain call.
                assert_eq!(unsafe { libc::fsync(own) }, 0);
            }
        });
        for round in 0..200_i64 {
            let page = [b'0' + (round % 10) as u8; 500];
            // SAFETY: plain call on a local buffer.
            assert_eq!(unsafe { libc::pwrite(fd, page.as_ptr().cast(), 500, round * 50) }, 500);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    cx.sync_show(fd);
}

family!("sync" => on_a_file [
    every_call, file_ranges, directories, writers_and_syncers_apart,
], others [
    through_a_read_only_descriptor, in_a_process_that_did_not_write, never_written,
]);
