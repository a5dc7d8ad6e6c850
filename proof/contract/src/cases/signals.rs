//! Signal handlers that write to the file the main line is writing to.

use crate::context::Context;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};

/// What the handlers work on: they may use nothing else.
static FILE: AtomicI32 = AtomicI32::new(-1);
static HANDLED: AtomicU32 = AtomicU32::new(0);
static FAILED: AtomicU32 = AtomicU32::new(0);

/// Where handlers write: far from the main line's pages.
const HANDLER_OFFSET: i64 = 100_000;

extern "C" fn write_in_handler(_signal: c_int) {
    let saved = crate::call::errno();
    let fd = FILE.load(Relaxed);
    let page = [b'h'; 256];
    // SAFETY: async-signal-safe calls on a local buffer.
    let written = unsafe { libc::pwrite(fd, page.as_ptr().cast(), page.len(), HANDLER_OFFSET) };
    let handled = HANDLED.fetch_add(1, Relaxed);
    // SAFETY: as above.
    let synced = if handled.is_multiple_of(4) { unsafe { libc::fdatasync(fd) } } else { 0 };
    if written != 256 || synced != 0 {
        FAILED.fetch_add(1, Relaxed);
    }
    crate::call::set_errno(saved);
}

extern "C" fn truncate_in_handler(_signal: c_int) {
    let saved = crate::call::errno();
    let fd = FILE.load(Relaxed);
    // SAFETY: async-signal-safe calls.
    let failed = unsafe { libc::ftruncate(fd, 200_000) != 0 || libc::ftruncate(fd, 150_000) != 0 };
    HANDLED.fetch_add(1, Relaxed);
    FAILED.fetch_add(u32::from(failed), Relaxed);
    crate::call::set_errno(saved);
}

fn handle(signal: c_int, handler: extern "C" fn(c_int), flags: c_int) {
    // SAFETY: a zeroed sigaction with a handler that only makes async-signal-safe calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = flags;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

fn tick_every(microseconds: i64) {
    let interval = libc::timeval { tv_sec: 0, tv_usec: microseconds };
    let timer = libc::itimerval { it_interval: interval, it_value: interval };
    // SAFETY: a valid timer; the old one is not wanted. libc does not declare setitimer everywhere.
    unsafe {
        libc::syscall(libc::SYS_setitimer, 0, &raw const timer, std::ptr::null_mut::<libc::itimerval>());
    }
}

/// The main line: writes and syncs until handlers ran often enough (or, at worst, for a minute).
fn write_until_handled(cx: &Context, fd: c_int, times: u32) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut failures = 0;
    let mut round = 0_i64;
    while HANDLED.load(Relaxed) < times && std::time::Instant::now() < end {
        let page = [b'm'; 3000];
        // SAFETY: plain calls on a local buffer.
        unsafe {
            failures += u32::from(libc::pwrite(fd, page.as_ptr().cast(), 3000, round % 5 * 1000) != 3000);
            if round % 3 == 0 {
                failures += u32::from(libc::fdatasync(fd) != 0);
            }
        }
        round += 1;
    }
    tick_every(0);
    let handled = HANDLED.load(Relaxed) >= times;
    cx.note(format_args!(
        "handled {handled} main failures {failures} handler failures {}",
        FAILED.load(Relaxed)
    ));
}

/// Whatever the main line got round to, all five of its stretches are written now.
fn rewrite_all(cx: &Context, fd: c_int) {
    for page in 0..5 {
        cx.pwrite(fd, b'm', 3000, page * 1000);
    }
}

fn handler_writes_too(cx: &Context, fd: c_int) {
    FILE.store(fd, Relaxed);
    handle(libc::SIGALRM, write_in_handler, libc::SA_RESTART);
    tick_every(150);
    write_until_handled(cx, fd, 1000);
    rewrite_all(cx, fd);
    cx.sync_show(fd);
}

fn handler_truncates(cx: &Context, fd: c_int) {
    FILE.store(fd, Relaxed);
    handle(libc::SIGALRM, truncate_in_handler, libc::SA_RESTART);
    tick_every(300);
    write_until_handled(cx, fd, 200);
    rewrite_all(cx, fd);
}

/// The handler writes to another managed file than the main line.
fn handler_writes_elsewhere(cx: &Context) {
    let (fd, other) = (cx.file("a"), cx.file("b"));
    FILE.store(other, Relaxed);
    handle(libc::SIGALRM, write_in_handler, 0);
    tick_every(150);
    write_until_handled(cx, fd, 500);
    rewrite_all(cx, fd);
    cx.show(fd);
    cx.write_sync_show(other);
}

/// The handler's file was never used before: its first write happens inside a signal handler.
fn first_use_in_a_handler(cx: &Context, fd: c_int) {
    let fresh = cx.open(&cx.path("fresh"), libc::O_RDWR | libc::O_CREAT);
    FILE.store(fresh, Relaxed);
    handle(libc::SIGUSR1, write_in_handler, 0);
    cx.pwrite(fd, b'B', 10, 0);
    call!(cx, raise(libc::SIGUSR1));
    cx.note(format_args!("handled {} handler failures {}", HANDLED.load(Relaxed), FAILED.load(Relaxed)));
    cx.write_sync_show(fresh);
}

/// A handler on an alternate stack, as runtimes install.
fn handler_on_a_small_alternate_stack(cx: &Context, fd: c_int) {
    FILE.store(fd, Relaxed);
    let stack = Box::leak(vec![0_u8; 16 * 1024].into_boxed_slice());
    // SAFETY: the stack is leaked: it lives as long as the process.
    unsafe {
        let alternate = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
        libc::sigaltstack(&raw const alternate, std::ptr::null_mut());
    }
    handle(libc::SIGALRM, write_in_handler, libc::SA_ONSTACK | libc::SA_RESTART);
    tick_every(200);
    write_until_handled(cx, fd, 300);
    rewrite_all(cx, fd);
}

/// What a program inherits: no signal blocked or ignored that its starter had not.
fn inherited_signal_state(cx: &Context) {
    for signal in 1..32 {
        // SAFETY: zeroed sets and actions are valid out parameters.
        let (blocked, ignored) = unsafe {
            let mut mask: libc::sigset_t = std::mem::zeroed();
            libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut mask);
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action);
            (libc::sigismember(&raw const mask, signal) == 1, action.sa_sigaction == libc::SIG_IGN)
        };
        if blocked || ignored {
            cx.note(format_args!("signal {signal}: blocked {blocked} ignored {ignored}"));
        }
    }
}

family!("signals" => on_a_file [
    handler_writes_too, handler_truncates, first_use_in_a_handler, handler_on_a_small_alternate_stack,
], others [
    inherited_signal_state, handler_writes_elsewhere,
]);
