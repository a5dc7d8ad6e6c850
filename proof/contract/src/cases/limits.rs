//! RLIMIT_FSIZE: EFBIG, the signal, partial writes.

use crate::context::Context;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const LIMIT: u64 = 10_000;
static SIGNALS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_signal: c_int) {
    SIGNALS.fetch_add(1, Relaxed);
}

fn limit_file_size(cx: &Context) {
    let limit = libc::rlimit { rlim_cur: LIMIT, rlim_max: libc::RLIM_INFINITY };
    call!(cx, setrlimit(libc::RLIMIT_FSIZE, &raw const limit));
}

fn everything_at_the_limit(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'1', 100, LIMIT as i64);
    cx.pwrite(fd, b'2', 100, LIMIT as i64 - 40);
    cx.pwrite(fd, b'3', 100, LIMIT as i64 + 5000);
    cx.seek(fd, LIMIT as i64 - 10, libc::SEEK_SET);
    cx.write(fd, b'4', 100);
    cx.seek(fd, 0, libc::SEEK_CUR);
    cx.write(fd, b'5', 100);
    call!(cx, ftruncate(fd, 20_000));
    call!(cx, fallocate(fd, 0, 0, 20_000));
    call!(cx, ErrorNumber, posix_fallocate(fd, 0, 20_000));
    let text = [b'v'; 50];
    let part = libc::iovec { iov_base: text.as_ptr().cast_mut().cast(), iov_len: 50 };
    let parts = [part, part, part];
    call!(cx, pwritev(fd, parts.as_ptr(), 3, LIMIT as i64 - 70));
    cx.fsync(fd);
    cx.write_sync_show(fd);
}

fn signal_ignored(cx: &Context) {
    let fd = cx.file("a");
    // SAFETY: ignoring a signal.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    limit_file_size(cx);
    everything_at_the_limit(cx, fd);
}

/// Exactly one signal for each call that fails.
fn signal_counted(cx: &Context, fd: c_int) {
    // SAFETY: the handler only counts.
    unsafe { libc::signal(libc::SIGXFSZ, count as *const () as usize) };
    limit_file_size(cx);
    for _ in 0..3 {
        cx.pwrite(fd, b'B', 100, LIMIT as i64);
        cx.note(format_args!("signals {}", SIGNALS.load(Relaxed)));
        cx.pwrite(fd, b'C', 100, LIMIT as i64 - 50);
        cx.note(format_args!("signals {}", SIGNALS.load(Relaxed)));
    }
    call!(cx, ftruncate(fd, 20_000));
    cx.note(format_args!("signals {}", SIGNALS.load(Relaxed)));
}

fn signal_kills(cx: &Context, fd: c_int) {
    cx.in_child(|| {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        limit_file_size(cx);
        // SAFETY: plain calls in the child: no core file.
        unsafe {
            libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        }
        cx.pwrite(fd, b'B', 100, LIMIT as i64);
        0
    });
}

fn appending_at_the_limit(cx: &Context) {
    let fd = cx.file_with("a", libc::O_APPEND);
    // SAFETY: ignoring a signal.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    limit_file_size(cx);
    for fill in [b'1', b'2', b'3', b'4'] {
        cx.write(fd, fill, 1000);
        cx.fdatasync(fd);
    }
    call!(cx, ftruncate(fd, 9500));
    cx.write(fd, b'5', 1000);
    cx.fdatasync(fd);
    cx.show(fd);
}

family!("limits" => on_a_file [
    signal_counted, signal_kills,
], others [
    signal_ignored, appending_at_the_limit,
]);
