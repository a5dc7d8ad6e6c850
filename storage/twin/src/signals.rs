//! Signals are read, not handled: they belong to the server.

use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Those that are handed on.
const HANDED_ON: [Signal; 6] =
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

/// The signals that came.
pub struct Signals(SignalFd);

impl Signals {
    /// From now on they are read, in all threads that are started later, too.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn take() -> Result<Self> {
        let mask = SigSet::from_iter(HANDED_ON);
        mask.thread_swap_mask(SigmaskHow::SIG_BLOCK).context("cannot block signals")?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self(SignalFd::with_flags(&mask, flags).context("cannot read signals")?))
    }

    /// The next one that came.
    pub fn next(&self) -> Option<i32> {
        self.0.read_signal().ok().flatten().map(|signal| signal.ssi_signo as i32)
    }

    /// Waits for one, for the end of a process, or for so long.
    pub fn wait(&self, process: &impl AsFd, limit: Duration) {
        let mut both = [PollFd::new(&self.0, PollFlags::IN), PollFd::new(process, PollFlags::IN)];
        let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(limit.subsec_nanos()) };
        let _ = poll(&mut both, Some(&limit));
    }
}
