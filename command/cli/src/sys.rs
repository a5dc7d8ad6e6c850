//! What needs `unsafe`: what happens between fork and exec, and signals that have no names.

#![allow(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Sends any signal, also one without a name. A process that is gone needs none.
pub fn send(process: u32, signal: i32) {
    let Ok(process) = i32::try_from(process) else { return };
    // SAFETY: kill(2) takes numbers, and none of them is an address.
    unsafe { nix::libc::kill(process, signal) };
}

/// The command starts with this signal mask, not with ours: std leaves it as it is.
pub fn start_with_mask(command: &mut Command, mask: SigSet) {
    // SAFETY: between fork and exec only pthread_sigmask(3) is called, which is async-signal-safe, and the
    // closure owns all it uses.
    unsafe { command.pre_exec(move || mask.thread_set_mask().map_err(std::io::Error::from)) };
}

/// A file that would become longer than it may (`ulimit -f`) is an error of the call, which we report in words, and no
/// signal that ends this process. By a handler: a program that we start has none, and gets the signal as ever.
pub fn hear_of_long_files() {
    extern "C" fn nothing(_: i32) {}
    let handler = SigAction::new(SigHandler::Handler(nothing), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler does nothing.
    if let Ok(before) = unsafe { sigaction(Signal::SIGXFSZ, &handler) }
        && matches!(before.handler(), SigHandler::SigIgn)
    {
        // Whoever started us wants it ignored in all that we start, too.
        // SAFETY: it is what was there.
        let _ = unsafe { sigaction(Signal::SIGXFSZ, &before) };
    }
}
