//! What a process that serves does beside that: it hears signals, replaces a daemon that dies, and closes the log at the end.

use anyhow::Result;
use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use seawall_daemon::control::Stopped;

use crate::run::join::Link;

/// Pause between attempts to replace a dead daemon.
const RETRY: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Drains and closes if nobody else is left. `next`: what brings the log to the files otherwise, a mount or a start.
pub fn close(link: &mut Link, next: &str, quiet: bool) {
    match link.leave() {
        Ok(Some(Stopped { ended: false, users, .. })) if !quiet && !users.is_empty() => {
            errln!("seawall: {} processes still use the log; the daemon goes on", users.len());
        }
        Ok(_) => {}
        Err(e) => errln!(
            "seawall: cannot close the log: {e}. The log is kept; the next {next}, or `seawall recover \
             --pool {}`, brings it to the files",
            link.pool().display()
        ),
    }
}

/// Looks after the daemon until it is `over`: asked whenever `ended` can be read, and at other times. `told` is called for each
/// signal.
///
/// # Errors
/// What `over` says.
pub fn look_after<T>(
    mut link: Option<&mut Link>,
    signals: &SignalFd,
    ended: impl AsFd,
    mut over: impl FnMut() -> Result<Option<T>>,
    mut told: impl FnMut(),
) -> Result<T> {
    let mut alone = false;
    loop {
        let mut fds = vec![PollFd::new(&ended, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        if let Some(link) = link.as_ref().filter(|_| !alone) {
            fds.push(PollFd::new(link.control(), PollFlags::IN));
        }
        // Interrupted or timed out: in every case we look.
        let _ = poll(&mut fds, alone.then_some(&RETRY));
        let hung_up = alone || fds.get(2).is_some_and(|fd| !fd.revents().is_empty());
        if let Some(end) = over()? {
            return Ok(end);
        }
        while let Ok(Some(_)) = signals.read_signal() {
            told();
        }
        if let Some(link) = link.as_mut().filter(|_| hung_up) {
            alone = !link.replace(alone);
        }
    }
}
