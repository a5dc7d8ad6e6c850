//! A full file system. Runs only when named, in a directory on a small one.

use crate::cases::Body;
use crate::context::{Context, contents};
use std::ffi::c_int;

/// Writes until the file system is full; what was acknowledged.
fn fill(fd: c_int, length: usize) -> (i64, i32) {
    let page = vec![b'f'; length];
    let mut total = 0;
    loop {
        // SAFETY: plain call on our own buffer.
        let written = unsafe { libc::pwrite(fd, page.as_ptr().cast(), length, total) };
        if written <= 0 {
            return (total, crate::call::errno());
        }
        total += written as i64;
    }
}

/// How much fits differs by what a front keeps beside the files; that nothing acknowledged is missing does not.
fn fill_and_recover(cx: &Context, length: usize) {
    let fd = cx.file("a");
    let keep = cx.file("keep");
    let (total, errno) = fill(fd, length);
    cx.note(format_args!("then {}", crate::trace::errno_name(errno)));
    cx.fsync(fd);
    let bytes = contents(fd);
    cx.note(format_args!(
        "all acknowledged bytes are there: {}",
        bytes.len() as i64 == total && bytes.iter().all(|byte| *byte == b'f')
    ));
    cx.write_sync_show(keep);
    cx.pwrite(keep, b'k', 1000, 200 << 20);
    call!(cx, ErrorNumber, posix_fallocate(keep, 0, 1 << 30));
    call!(cx, ftruncate(fd, 0));
    cx.fsync(fd);
    cx.write_sync_show(fd);
    cx.pwrite(keep, b'k', 10_000, 0);
    call!(cx, ftruncate(keep, 10_000));
    cx.write_sync_show(keep);
}

fn small_writes(cx: &Context) {
    fill_and_recover(cx, 4096);
}

fn large_writes(cx: &Context) {
    fill_and_recover(cx, 700_001);
}

/// Overwriting in place needs no space.
fn overwriting_when_full(cx: &Context) {
    let fd = cx.file("a");
    let filler = cx.open(&cx.plain_path("filler"), libc::O_RDWR | libc::O_CREAT);
    cx.fsync(fd);
    fill(filler, 65_536);
    fill(filler, 512);
    cx.pwrite(fd, b'o', 8192, 0);
    cx.fsync(fd);
    cx.write_sync_show(fd);
    call!(cx, unlink(cx.plain_path("filler").as_ptr()));
}

/// The cases of this family: on request only.
pub fn cases() -> Vec<super::Case> {
    let case = |name, body| super::Case { family: "space", name, on_request: true, body: Body::Other(body) };
    vec![
        case("space/small_writes", small_writes),
        case("space/large_writes", large_writes),
        case("space/overwriting_when_full", overwriting_when_full),
    ]
}
