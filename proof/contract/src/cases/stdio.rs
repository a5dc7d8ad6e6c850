//! Streams: what fwrite writes happens inside libc, beside the writes a front can see.

use crate::context::Context;
use libc::FILE;
use std::ffi::{CStr, c_char, c_int};

fn open_stream(cx: &Context, tag: &str, mode: &CStr) -> *mut FILE {
    call!(cx, Address, fopen(cx.path(tag).as_ptr(), mode.as_ptr())) as *mut FILE
}

fn put(cx: &Context, stream: *mut FILE, fill: u8, length: usize) {
    let buffer = vec![fill; length];
    call!(cx, fwrite(buffer.as_ptr().cast(), 1, length, stream));
}

fn number(stream: *mut FILE) -> c_int {
    // SAFETY: an open stream.
    unsafe { libc::fileno(stream) }
}

fn every_mode(cx: &Context) {
    for mode in [c"r+", c"a", c"a+", c"w", c"w+", c"r", c"wx", c"r+e"] {
        let fd = cx.file("a");
        cx.pwrite(fd, b'B', 100, 0);
        cx.fsync(fd);
        let stream = open_stream(cx, "a", mode);
        if stream.is_null() {
            continue;
        }
        put(cx, stream, b's', 500);
        call!(cx, fflush(stream));
        call!(cx, fsync(number(stream)));
        cx.show(fd);
        put(cx, stream, b't', 6000);
        call!(cx, fclose(stream));
        cx.fsync(fd);
        cx.write_sync_show(fd);
        cx.close(fd);
    }
}

fn aliases(cx: &Context, _: c_int) {
    let path = cx.path("a");
    let stream = call_named!(
        cx,
        Address,
        "fopen64",
        fn(*const c_char, *const c_char) -> *mut FILE,
        (path.as_ptr(), c"r+".as_ptr())
    ) as *mut FILE;
    put(cx, stream, b's', 100);
    let stream = call_named!(
        cx,
        Address,
        "freopen64",
        fn(*const c_char, *const c_char, *mut FILE) -> *mut FILE,
        (path.as_ptr(), c"a".as_ptr(), stream)
    ) as *mut FILE;
    put(cx, stream, b't', 100);
    call!(cx, fclose(stream));
}

fn mixed_with_writes(cx: &Context) {
    let fd = cx.file("a");
    let stream = call!(cx, Address, fdopen(fd, c"r+".as_ptr())) as *mut FILE;
    put(cx, stream, b's', 100);
    call!(cx, fflush(stream));
    cx.write(fd, b'w', 50);
    call!(cx, fseek(stream, 1000, libc::SEEK_SET));
    put(cx, stream, b't', 100);
    call!(cx, fflush(stream));
    cx.pwrite(fd, b'p', 10, 1050);
    cx.sync_show(fd);
    call!(cx, fputs(c"text".as_ptr(), stream));
    call!(cx, fputc(c_int::from(b'!'), stream));
    call!(cx, fprintf(stream, c"%d and %s".as_ptr(), 42, c"more".as_ptr()));
    call!(cx, ftell(stream));
    call!(cx, fclose(stream));
    cx.fsync(fd);
    cx.show_path(&cx.path("a"));
}

fn unbuffered(cx: &Context) {
    let fd = cx.file("a");
    let stream = open_stream(cx, "a", c"r+");
    call!(cx, setvbuf(stream, std::ptr::null_mut(), libc::_IONBF, 0));
    put(cx, stream, b's', 100);
    cx.show(fd);
    put(cx, stream, b't', 10_000);
    cx.fsync(fd);
    cx.write_sync_show(fd);
    call!(cx, fclose(stream));
}

fn reopened(cx: &Context) {
    let (a, b) = (cx.file("a"), cx.file("b"));
    let stream = open_stream(cx, "a", c"r+");
    put(cx, stream, b's', 100);
    let stream = call!(cx, Address, freopen(cx.path("b").as_ptr(), c"r+".as_ptr(), stream)) as *mut FILE;
    put(cx, stream, b't', 100);
    call!(cx, fflush(stream));
    cx.pwrite(b, b'p', 10, 50);
    cx.fsync(b);
    let stream = call!(cx, Address, freopen(cx.plain_path("p").as_ptr(), c"w".as_ptr(), stream)) as *mut FILE;
    put(cx, stream, b'u', 100);
    call!(cx, fclose(stream));
    cx.write_sync_show(a);
    cx.write_sync_show(b);
}

/// Redis' rewrite: a stream on a temporary file, flushed, synced, renamed, and appended to by write.
fn written_renamed_appended(cx: &Context) {
    cx.file("a");
    let stream = open_stream(cx, "temporary", c"w");
    put(cx, stream, b's', 20_000);
    call!(cx, fflush(stream));
    call!(cx, fsync(number(stream)));
    call!(cx, fclose(stream));
    call!(cx, rename(cx.path("temporary").as_ptr(), cx.path("a").as_ptr()));
    let fd = cx.open(&cx.path("a"), libc::O_RDWR | libc::O_APPEND);
    for fill in [b'1', b'2', b'3'] {
        cx.write(fd, fill, 100);
        cx.fdatasync(fd);
    }
    cx.show(fd);
}

fn formatted_to_descriptors(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 100, 0);
    cx.dprintf(fd, c"formatted");
    cx.fsync(fd);
    cx.checked_dprintf(fd, c"checked");
    cx.sync_show(fd);
}

fn child_inherits_a_full_buffer(cx: &Context, fd: c_int) {
    let stream = open_stream(cx, "a", c"r+");
    put(cx, stream, b's', 100);
    cx.in_child(|| {
        call!(cx, fflush(stream));
        cx.fsync(fd) as c_int
    });
    call!(cx, fclose(stream));
}

fn temporary_stream(cx: &Context, _: c_int) {
    let stream = call!(cx, Address, tmpfile()) as *mut FILE;
    put(cx, stream, b's', 100);
    call!(cx, fflush(stream));
    cx.show(number(stream));
    call!(cx, fsync(number(stream)));
    call!(cx, fclose(stream));
}

fn closed_underneath(cx: &Context, _: c_int) {
    let stream = open_stream(cx, "a", c"r+");
    put(cx, stream, b's', 100);
    cx.close(number(stream));
    call!(cx, fflush(stream));
    call!(cx, fclose(stream));
}

family!("stdio" => on_a_file [
    aliases, formatted_to_descriptors, child_inherits_a_full_buffer, temporary_stream, closed_underneath,
], others [
    every_mode, mixed_with_writes, unbuffered, reopened, written_renamed_appended,
]);
