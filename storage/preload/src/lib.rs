//! The LD_PRELOAD front: libc's file calls, through the log.
//!
//! A call comes in through `entry/` (one file per family), asks [`classify`] what its descriptor or [`look`]
//! what its path is, and goes to the kernel as it came, or through the engine.
//!
//! What runs here runs inside somebody else's process, perhaps in a signal handler, before constructors or
//! after fork: no std, no allocation, no thread-local storage, no lock of our own, system calls by
//! instruction. What must not drift is in docs/internals/SEMANTICS.md; which call is where in docs/internals/COVERAGE.md.

#![no_std]

mod again;
mod app;
mod asynchronous;
mod cached;
mod classify;
mod client;
mod entry;
mod environment;
mod errno;
mod fdtable;
mod guard;
mod holds;
mod io_uring;
mod journal;
mod kept;
mod loader;
mod log;
mod look;
mod mapped;
mod named;
mod owner;
mod real;
mod session;
mod socket;
mod strays;
mod sys;
mod unseen;
mod unsynced;

use core::ffi::{c_char, c_int};

type Constructor = unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char);

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: Constructor = start;

/// Hooks work without it; it sees the environment and the process id before the application can change them.
unsafe extern "C" fn start(argc: c_int, argv: *const *const c_char, envp: *const *const c_char) {
    if loader::is_glibcs() && loader::are_mains(argc, argv, envp) {
        // SAFETY: main's third argument.
        unsafe { environment::take(envp) };
    } else {
        environment::leave_unset();
    }
    entry::frame::bind();
    session::start();
    if !session::is_off() {
        owner::remember_pid();
    }
}

// With `std` in the build (cargo build --workspace unifies features) the handler is std's.
seawall_wire::unless_std! {
    /// An impossibility: nothing can be unwound here, and what this thread holds of the log cannot be let go of halfway. So
    /// say what happened and end the process: for the dead others clean up.
    #[panic_handler]
    fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
        let place = info.location().map_or("", |at| at.file());
        let text = info.message().as_str().unwrap_or("");
        sys::say(&["internal error in ", place, ": ", text]);
        // SAFETY: abort may be called at any time.
        unsafe { libc::abort() }
    }

    // The prebuilt `core` names the personality of unwinding, though nothing unwinds. Hidden, so that no
    // other Rust library finds it.
    core::arch::global_asm!(
        ".globl rust_eh_personality",
        ".hidden rust_eh_personality",
        "rust_eh_personality: .long 0",
    );
}
