//! Another library in the process: its constructor runs file calls before ours did.
//!
//! The library is `native/native.c`, built by the driver; `SEAWALL_CONTRACT_NATIVE` names it. It
//! also holds what Rust cannot express: vfork, and threads that are cancelled.

use crate::context::Context;
use crate::process::Arguments;
use std::ffi::{CStr, CString, c_int, c_void};

/// A function of the native library, or a traced reason why there is none.
pub fn native(cx: &Context, name: &CStr) -> Option<*mut c_void> {
    let Some(path) = library_path() else {
        cx.note("skipped: SEAWALL_CONTRACT_NATIVE names no library");
        return None;
    };
    // SAFETY: loads our own library; its constructor only acts when its variable is set.
    let function = unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        if library.is_null() { std::ptr::null_mut() } else { libc::dlsym(library, name.as_ptr()) }
    };
    if function.is_null() {
        cx.note(format_args!("native library: no {name:?}"));
        return None;
    }
    Some(function)
}

fn library_path() -> Option<CString> {
    CString::new(std::env::var("SEAWALL_CONTRACT_NATIVE").ok()?).ok()
}

/// Preloaded after the shim, so the dynamic linker initialises it before the shim.
fn constructor_runs_first(cx: &Context) {
    let Some(library) = library_path() else {
        return cx.note("skipped: SEAWALL_CONTRACT_NATIVE names no library");
    };
    cx.file("a");
    let path = cx.path_text("a");
    let preload = std::env::var("LD_PRELOAD").unwrap_or_default();
    let preload = format!("{preload}:{}", library.to_string_lossy());
    let arguments = Arguments::child(&["constructed", &path]);
    cx.in_child(|| {
        let value = CString::new(preload.trim_start_matches(':')).unwrap_or_default();
        let file = CString::new(path.as_str()).unwrap_or_default();
        // SAFETY: the child has one thread; all strings are NUL-terminated.
        unsafe {
            libc::setenv(c"LD_PRELOAD".as_ptr(), value.as_ptr(), 1);
            libc::setenv(c"CONTRACT_CONSTRUCTOR_FILE".as_ptr(), file.as_ptr(), 1);
            libc::execv(arguments.program(), arguments.vector())
        }
    });
    cx.show_path(&cx.path("a"));
}

/// The same library loaded late.
fn loaded_later(cx: &Context, _: c_int) {
    let path = cx.path("a");
    // SAFETY: this case's process has one thread.
    unsafe { libc::setenv(c"CONTRACT_CONSTRUCTOR_FILE".as_ptr(), path.as_ptr(), 1) };
    native(cx, c"contract_vfork_close");
}

family!("library" => on_a_file [loaded_later], others [constructor_runs_first]);
