//! Threads that come and go, and end between or inside calls.

use crate::cases::library::native;
use crate::context::{Context, open_quietly};
use libc::O_RDWR;
use std::ffi::{c_int, c_void};

fn ending_threads(cx: &Context, rounds: c_int, how: c_int) {
    let Some(function) = native(cx, c"contract_threads_ending") else { return };
    let fd = cx.file("a");
    // SAFETY: `int contract_threads_ending(int fd, int rounds, int how)`, in native/native.c.
    let good = unsafe {
        std::mem::transmute::<*mut c_void, extern "C" fn(c_int, c_int, c_int) -> c_int>(function)(
            fd, rounds, how,
        )
    };
    cx.note(format_args!("threads ended well: {good} of {rounds}"));
    cx.pwrite(fd, b'a', 2000, 2048);
    cx.write_sync_show(fd);
    cx.write_sync_show(fd);
}

fn leaving_by_pthread_exit(cx: &Context) {
    ending_threads(cx, 100, 0);
}

fn cancelled(cx: &Context) {
    ending_threads(cx, 40, 1);
}

fn cancelled_at_any_instruction(cx: &Context) {
    ending_threads(cx, 40, 2);
}

/// One thread after another, each with one write: their lanes must be found again.
fn many_short_threads(cx: &Context, fd: c_int) {
    for index in 0..400_i64 {
        let failed = std::thread::spawn(move || {
            // SAFETY: plain calls on a descriptor that stays open and a static text.
            unsafe {
                libc::pwrite(fd, c"short".as_ptr().cast(), 5, index * 20) != 5
                    || (index % 50 == 0 && libc::fsync(fd) != 0)
            }
        })
        .join();
        if !matches!(failed, Ok(false)) {
            cx.note(format_args!("thread {index} failed"));
        }
    }
}

/// Many at once, each with a stretch of its own, through one descriptor.
fn many_at_once(cx: &Context, fd: c_int) {
    std::thread::scope(|scope| {
        for index in 0..100_i64 {
            scope.spawn(move || {
                let page = vec![b'0' + (index % 10) as u8; 300];
                for round in 0..10_i64 {
                    // SAFETY: plain calls on our own buffer.
                    unsafe {
                        assert_eq!(
                            libc::pwrite(fd, page.as_ptr().cast(), 300, index * 3000 + round * 300),
                            300
                        );
                        assert_eq!(libc::fdatasync(fd), 0);
                    }
                }
            });
        }
    });
    cx.show(fd);
}

fn each_with_its_own_descriptor(cx: &Context) {
    let fd = cx.file("a");
    let path = cx.path("a");
    std::thread::scope(|scope| {
        for index in 0..16_i64 {
            let path = &path;
            scope.spawn(move || {
                for round in 0..20_i64 {
                    let own = open_quietly(path, O_RDWR);
                    let page = [b'a' + index as u8; 64];
                    // SAFETY: plain calls on our own descriptor and buffer.
                    unsafe {
                        assert_eq!(
                            libc::pwrite(own, page.as_ptr().cast(), 64, index * 2000 + round * 64),
                            64
                        );
                        assert_eq!(libc::fsync(own), 0);
                        assert_eq!(libc::close(own), 0);
                    }
                }
            });
        }
    });
    cx.write_sync_show(fd);
}

/// One thread truncates and grows the tail while others write below it.
fn truncation_beside_writers(_: &Context, fd: c_int) {
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for round in 0..100 {
                // SAFETY: plain calls.
                unsafe {
                    assert_eq!(libc::ftruncate(fd, if round % 2 == 0 { 20_000 } else { 9000 }), 0);
                    assert_eq!(libc::fsync(fd), 0);
                }
            }
        });
        for index in 0..4_i64 {
            scope.spawn(move || {
                for round in 0..100_i64 {
                    let page = [b'0' + (round % 10) as u8; 1000];
                    // SAFETY: plain calls on our own buffer.
                    unsafe { assert_eq!(libc::pwrite(fd, page.as_ptr().cast(), 1000, index * 1000), 1000) };
                }
            });
        }
    });
}

family!("threads" => on_a_file [
    many_short_threads, many_at_once, truncation_beside_writers,
], others [
    leaving_by_pthread_exit, cancelled, cancelled_at_any_instruction, each_with_its_own_descriptor,
]);
