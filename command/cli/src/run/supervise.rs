//! While the command runs: signals go through, the daemon is replaced if it dies, the end is orderly.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use seawall_daemon::control::Stopped;

use super::init::Init;
use super::join::Link;
use super::program::{NotRunnable, Program};
use super::strays::Strays;
use super::witness::Witness;
use crate::recovery::Recovery;
use crate::sys::{self, start_with_mask};

/// Signals that are the command's business.
const FORWARDED: [Signal; 6] =
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];
/// signalfd's code for signals that the terminal sent: to the whole foreground group, so to the command too.
const SI_KERNEL: i32 = 0x80;
/// Pause between attempts to replace a dead daemon.
const RETRY: Duration = Duration::from_secs(1);
/// By the witness's look after three seconds a program has shown which files it syncs again and again.
const SETTLED: usize = 4;

/// Everything that is ready to run.
pub struct Session {
    pub command: Command,
    pub program: Program,
    pub link: Link,
    /// Orphans are ours.
    pub init: Option<Init>,
    /// How long a recovery of the database may take.
    pub recovery: Option<Recovery>,
    pub quiet: bool,
}

/// A session whose command runs.
struct Running {
    child: Child,
    signals: SignalFd,
    witness: Witness,
    strays: Strays,
    /// When to try again to replace the daemon; `None` while it lives.
    retry: Option<Instant>,
    asked_version: bool,
}

impl Session {
    /// Runs the command to its end.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn run(mut self) -> Result<ExitCode> {
        let (signals, mask) = self.block()?;
        start_with_mask(&mut self.command, mask);
        let strays = Strays::new(self.link.roots(), self.link.status().as_ref());
        let starting = self.recovery.take().map(Recovery::before_start);
        let is_to_be_back = starting.is_some();
        let started = self.command.spawn();
        let child = match started {
            Ok(child) => child,
            Err(e) => {
                self.close(strays);
                return Err(
                    NotRunnable::new(format!("cannot start {}: {e}", self.program.path.display())).into()
                );
            }
        };
        if let Some(starting) = starting {
            starting.accompany(&self.program.path, child.id());
        }
        let known = self.program.unprotected.map(|_| self.program.path.as_path());
        let witness = Witness::new(child.id(), known);
        let mut running = Running { child, signals, witness, strays, retry: None, asked_version: false };
        let status = self.watch(&mut running)?;
        if is_to_be_back && status.signal().is_some() {
            // Whoever starts it again waits for no drain: the daemon lingers, and closes the log if nobody comes.
            errln!("seawall: the command was killed; the log stays open for a moment, for its next start");
        } else {
            self.close(running.strays);
        }
        Ok(code(status))
    }

    fn watch(&mut self, running: &mut Running) -> Result<ExitStatus> {
        loop {
            let hung_up = self.wait(running);
            while let Ok(Some(signal)) = running.signals.read_signal() {
                self.forward(&running.child, signal.ssi_signo, signal.ssi_code);
            }
            if let Some(init) = &self.init {
                init.reap(running.child.id(), &mut self.link);
            }
            if let Some(status) = running.child.try_wait().context("cannot wait for the command")? {
                return Ok(status);
            }
            if hung_up || running.retry.is_some_and(|at| at <= Instant::now()) {
                self.replace_daemon(running);
            }
            let looks = running.witness.looks();
            running.witness.look().iter().for_each(|text| errln!("seawall: {text}"));
            if running.witness.looks() > looks && running.retry.is_none() {
                self.ask_daemon(running);
            }
        }
    }

    /// Waits for a signal, the daemon's end, or the next thing to do. True if the daemon is gone.
    fn wait(&self, running: &Running) -> bool {
        let retry = running.retry.map(|at| at.saturating_duration_since(Instant::now()));
        let time = running.witness.due_in().into_iter().chain(retry).min();
        let time = time.and_then(|time| Timespec::try_from(time).ok());
        let mut fds = vec![PollFd::new(&running.signals, PollFlags::IN)];
        if running.retry.is_none() {
            fds.push(PollFd::new(self.link.control(), PollFlags::IN));
        }
        poll(&mut fds, time.as_ref()).is_ok() && fds.get(1).is_some_and(|fd| !fd.revents().is_empty())
    }

    fn replace_daemon(&mut self, running: &mut Running) {
        let alone = !self.link.replace(running.retry.is_some());
        running.retry = alone.then(|| Instant::now() + RETRY);
    }

    /// After each look of the witness: is something synced elsewhere? And once, after its second one: did the daemon
    /// refuse a preload of another version?
    fn ask_daemon(&self, running: &mut Running) {
        let Some(status) = self.link.status() else { return };
        running.strays.elsewhere(&status).iter().for_each(|text| errln!("seawall: {text}"));
        let is_settled = running.witness.looks() >= SETTLED;
        let in_the_log = is_settled.then(|| running.strays.first(&status)).flatten().filter(|_| !self.quiet);
        in_the_log.iter().for_each(|text| errln!("seawall: {text}"));
        if running.witness.due_in().is_none() {
            running.strays.nothing(&status).iter().for_each(|text| errln!("seawall: {text}"));
        }
        if !running.asked_version && running.witness.looks() >= 2 {
            running.asked_version = true;
            if status.refused > 0 {
                errln!(
                    "seawall: WARNING: libseawall_preload.so is of another version than this program: the command runs \
                     WITHOUT Seawall. Install both from the same build"
                );
            }
        }
    }

    /// Drains and closes if nobody else is left. Otherwise the daemon goes on without us.
    fn close(&mut self, mut strays: Strays) {
        let status = self.link.status();
        let elsewhere = status.as_ref().and_then(|status| strays.elsewhere(status));
        match self.link.leave() {
            Ok(Some(Stopped { ended: false, users, .. })) if !users.is_empty() => {
                if let Some(init) = &self.init {
                    init.end_others(&users, &mut self.link);
                }
                elsewhere.iter().for_each(|text| errln!("seawall: {text}"));
                if !self.quiet {
                    errln!(
                        "seawall: {} processes go on; the daemon drains and closes when the last has ended",
                        users.len()
                    );
                }
            }
            Ok(_) => {
                let nothing = || status.as_ref().and_then(|status| strays.nothing(status));
                elsewhere.or_else(nothing).iter().for_each(|text| errln!("seawall: {text}"));
            }
            Err(e) => errln!(
                "seawall: cannot close the log: {e}. The log is kept; the next `seawall run`, or `seawall \
                 recover --pool {}`, brings it to the files",
                self.link.pool().display()
            ),
        }
    }

    /// Signals are read from now on. Returns also the mask as it was: the command's.
    fn block(&self) -> Result<(SignalFd, SigSet)> {
        let mut mask = if self.init.is_some() { Init::mask() } else { SigSet::empty() };
        FORWARDED.iter().for_each(|signal| mask.add(*signal));
        mask.add(Signal::SIGCHLD);
        let before = mask.thread_swap_mask(SigmaskHow::SIG_BLOCK).context("cannot block signals")?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok((SignalFd::with_flags(&mask, flags).context("cannot read signals")?, before))
    }

    fn forward(&self, child: &Child, number: u32, code: i32) {
        let number = number as i32;
        let is_the_commands = self.init.is_some() || FORWARDED.iter().any(|signal| *signal as i32 == number);
        if is_the_commands && number != Signal::SIGCHLD as i32 && code != SI_KERNEL {
            // The child is not reaped yet, so its process id is still its own.
            sys::send(child.id(), number);
        }
    }
}

fn code(status: ExitStatus) -> ExitCode {
    let signal = status.signal().map_or(1, |signal| 128 + signal);
    ExitCode::from(u8::try_from(status.code().unwrap_or(signal)).unwrap_or(1))
}
