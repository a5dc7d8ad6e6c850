//! As the first process of a container, or with `--init`: whoever loses their parent becomes our child.
//!
//! The kernel hands orphans to the first process of their namespace and waits until it reaps them; and it does nothing of
//! its own about a signal to that process. So we do as tini does: reap whatever ends, hand every signal to the command,
//! end with its code.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};

use super::join::Link;
use crate::sys;

/// What the kernel sends to whoever did something wrong, and to whoever uses a terminal that is not theirs.
const OUR_OWN: [Signal; 9] = [
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGABRT,
    Signal::SIGTRAP,
    Signal::SIGSYS,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
];
/// How long those that are left at the end have, before the kernel ends them with us.
const LAST: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// What that takes.
pub struct Init {
    /// When we end the kernel ends everybody.
    is_first: bool,
}

impl Init {
    /// If we are the first process, or are `asked` to do as one.
    ///
    /// # Errors
    /// If orphans cannot be had.
    pub fn begin(asked: bool) -> Result<Option<Self>> {
        let is_first = std::process::id() == 1;
        if asked && !is_first {
            let me = rustix::process::getpid();
            rustix::process::set_child_subreaper(Some(me))
                .context("--init: cannot adopt orphaned processes")?;
        }
        Ok((asked || is_first).then_some(Self { is_first }))
    }

    /// What is read instead of taking effect: everything but what is our own.
    pub fn mask() -> SigSet {
        let mut mask = SigSet::all();
        OUR_OWN.iter().for_each(|signal| mask.remove(*signal));
        mask
    }

    /// Reaps what has ended, but for the command and the daemon, whom others wait for.
    pub fn reap(&self, command: u32, link: &mut Link) {
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        while let Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..)) = waitid(Id::All, look) {
            let number = pid.as_raw().unsigned_abs();
            if number == command {
                return; // The end: the kernel reaps the rest.
            }
            if !link.reaps(number) && waitpid(pid, Some(WaitPidFlag::WNOHANG)).is_err() {
                return;
            }
        }
    }

    /// The command has ended and these processes use the log. If everybody ends with us, we ask them to end before
    /// that, so that the log is closed and not cut off.
    pub fn end_others(&self, users: &[u32], link: &mut Link) {
        if !self.is_first {
            return;
        }
        users.iter().for_each(|pid| sys::send(*pid, Signal::SIGTERM as i32));
        let begin = Instant::now();
        while begin.elapsed() < LAST {
            self.reap(0, link);
            std::thread::sleep(PAUSE);
            match link.leave() {
                Ok(Some(left)) if !left.ended => {}
                _ => return,
            }
        }
    }
}
