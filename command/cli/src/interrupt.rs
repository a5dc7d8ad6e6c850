//! Ctrl-C and its kin: signals that ask a command to end are read, so that none ends it in the middle of something.

use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// SIGINT, SIGTERM and SIGHUP are read from now on, not delivered.
///
/// # Errors
/// They cannot be.
pub fn block() -> Result<SignalFd> {
    let mut mask = SigSet::empty();
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().for_each(|signal| mask.add(signal));
    mask.thread_block().context("cannot block signals")?;
    SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).context("cannot read signals")
}

/// Waits so long. True: somebody wants us to end.
///
/// # Errors
/// We cannot wait.
pub fn within(signals: &SignalFd, wait: Duration) -> Result<bool> {
    let mut fds = [PollFd::new(signals, PollFlags::IN)];
    match poll(&mut fds, Timespec::try_from(wait).ok().as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error).context("cannot wait for signals"),
    }
}
