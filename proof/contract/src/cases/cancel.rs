//! Threads that are cancelled (pthread_cancel): POSIX's cancellation points are points, nothing else is, and nothing is
//! left half done. The threads are C's, in native/cancel.c.

use crate::cases::library::native;
use crate::context::Context;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};

type Say = extern "C" fn(*const c_char);
type OnScene = extern "C" fn(c_int, *const c_char, *const c_char, Say);
type Anywhere = extern "C" fn(c_int, *const c_char, c_int, c_int, Say);

thread_local! {
    static TRACE: RefCell<Option<Context>> = const { RefCell::new(None) };
}

/// Traces a line of C's.
extern "C" fn say(line: *const c_char) {
    // SAFETY: C passes a string that lives for the call.
    let line = unsafe { CStr::from_ptr(line) }.to_string_lossy();
    TRACE.with_borrow(|cx| {
        if let Some(cx) = cx {
            cx.note(line);
        }
    });
}

fn function(cx: &Context, name: &CStr) -> Option<*mut c_void> {
    TRACE.set(Some(cx.clone()));
    native(cx, name)
}

fn on_scene(cx: &Context, name: &CStr) {
    let Some(at) = function(cx, name) else { return };
    let fd = cx.file("a");
    // SAFETY: `void f(int file, const char *path, const char *fifo, say)`, in native/cancel.c.
    let run = unsafe { std::mem::transmute::<*mut c_void, OnScene>(at) };
    run(fd, cx.path("a").as_ptr(), cx.plain_path("fifo").as_ptr(), say);
    cx.write_sync_show(fd);
}

fn pending_before_the_call(cx: &Context) {
    on_scene(cx, c"contract_cancel_pending");
}

fn while_the_call_waits(cx: &Context) {
    on_scene(cx, c"contract_cancel_blocked");
}

fn at_any_moment(cx: &Context) {
    let Some(at) = function(cx, c"contract_cancel_anywhere") else { return };
    let fd = cx.file("a");
    // SAFETY: `void f(int file, const char *path, int rounds, int with_types, say)`, in native/cancel.c.
    let run = unsafe { std::mem::transmute::<*mut c_void, Anywhere>(at) };
    run(fd, cx.path("a").as_ptr(), 60, 2, say);
    cx.write_sync_show(fd);
}

family!("cancel" => [pending_before_the_call, while_the_call_waits, at_any_moment]);
