//! How servers end, and what that means.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::Signal;

use crate::pair::Supervisor;
use crate::twin::Twin;

/// Hands signals on to the primary. The ones that end it end everything; a server that we only follow is left alone.
pub fn forward_signals(of: &mut Supervisor) {
    while let Some(number) = of.signals.next() {
        let ends = [Signal::TERM, Signal::INT, Signal::QUIT].iter().any(|signal| signal.as_raw() == number);
        of.stopping |= ends;
        if let Some(signal) = Signal::from_named_raw(number).filter(|_| !of.is_foreign) {
            of.primary.signal(signal);
        }
    }
}

/// The exit code, if the primary that is dead was to end: a signal asked for that, or it ended by itself without a fault,
/// as it does after SHUTDOWN.
pub fn is_wanted(of: &mut Supervisor) -> Option<u8> {
    if !of.stopping && of.primary.exit_status() != Some(0) {
        return None;
    }
    match of.primary.wait() {
        Some(status) if of.stopping || status.success() => Some(code(status)),
        Some(_) => None,
        None => Some(0),
    }
}

/// Ends what is left.
pub fn all(of: &mut Supervisor) {
    if let Some(twin) = of.twin.take() {
        twin.server.signal(Signal::KILL);
        let mut server = twin.server;
        let _ = server.wait();
    }
    of.directory.tidy(&of.state);
}

/// A twin that is not wanted any more. It has nothing that is not elsewhere.
pub fn kill(twin: Twin) {
    twin.server.signal(Signal::KILL);
    // The kernel takes a while to free its memory, and nobody needs to wait for that.
    std::thread::spawn(move || {
        let mut twin = twin;
        twin.server.wait()
    });
}

/// What we exit with.
pub fn code(status: ExitStatus) -> u8 {
    let signal = status.signal().map_or(1, |signal| 128 + signal);
    u8::try_from(status.code().unwrap_or(signal)).unwrap_or(1)
}
