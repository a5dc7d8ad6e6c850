//! Every process the lab starts, and the promise that none outlives it.
//!
//! - Each child runs in its own process group (a Ctrl-C reaches only the lab, which then ends things
//!   in the right order) and gets a parent-death signal.
//! - A [`Running`] ends its process when dropped, whatever the reason.
//! - The lab adopts orphans (`PR_SET_CHILD_SUBREAPER`), so that grandchildren whose parent was
//!   killed can still be found by parentage, and are ended at exit. Nothing is killed by name.

mod tree;

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{MemfdFlags, memfd_create};

pub use tree::{
    adopt_orphans, command_line, cpu_seconds, descendants, kill_and_wait, kill_leftovers, reap_orphans,
};
use tree::{disown, spawn};

static INTERRUPTS: AtomicUsize = AtomicUsize::new(0);
const POLL: Duration = Duration::from_millis(10);

/// Makes SIGINT, SIGTERM and SIGHUP ask the lab to end in order.
pub fn catch_interrupts() {
    extern "C" fn note(_: libc::c_int) {
        INTERRUPTS.fetch_add(1, Ordering::Relaxed);
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only touches an atomic, which is async-signal-safe.
        unsafe { libc::signal(signal, note as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    }
}

/// Whether somebody asked us to end.
pub fn interrupted() -> bool {
    INTERRUPTS.load(Ordering::Relaxed) > 0
}

/// An error once somebody asked us to end; called wherever the lab waits.
pub fn check_interrupted() -> Result<()> {
    if interrupted() { bail!("interrupted") } else { Ok(()) }
}

/// Sleeps, unless interrupted.
pub fn pause(duration: Duration) -> Result<()> {
    let end = Instant::now() + duration;
    while Instant::now() < end {
        check_interrupted()?;
        sleep(POLL.min(end - Instant::now().min(end)));
    }
    Ok(())
}

/// Waits until something is so, at most this long.
pub fn wait_until(what: &str, limit: Duration, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + limit;
    while !is_so()? {
        ensure!(Instant::now() < end, "{what}: this did not happen within {} s", limit.as_secs());
        pause(2 * POLL)?;
    }
    Ok(())
}

/// Sends a signal to one process; a process already gone is fine.
pub fn signal(pid: u32, signal: i32) {
    // SAFETY: plain integers.
    unsafe { libc::kill(pid as i32, signal) };
}

/// A started process; dropping it ends it.
pub struct Running {
    child: Child,
    what: String,
    /// The signal that asks it to end.
    gentle: i32,
    captured: Option<[File; 2]>,
    ended: Option<ExitStatus>,
}

/// How a process ended, and what it said.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

/// Starts `command`; `gentle` is the signal that asks this program to end (also when the lab dies).
pub fn start(mut command: Command, what: &str, gentle: i32) -> Result<Running> {
    let parent = std::process::id() as i32;
    command.process_group(0).stdin(Stdio::null());
    // SAFETY: the closure makes two async-signal-safe system calls and touches no memory.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, gentle);
            // The parent may have died before the line above.
            if libc::getppid() == parent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
        });
    }
    let program = command.get_program().to_string_lossy().into_owned();
    let child = spawn(&mut command).with_context(|| format!("cannot start {what} ({program})"))?;
    Ok(Running { child, what: what.to_owned(), gentle, captured: None, ended: None })
}

/// The same, keeping what it prints. In memory files, not pipes: a daemon left behind by the program
/// would hold a pipe open for ever.
pub fn start_captured(mut command: Command, what: &str, gentle: i32) -> Result<Running> {
    let captured = [memory_file()?, memory_file()?];
    command.stdout(captured[0].try_clone()?).stderr(captured[1].try_clone()?);
    let mut running = start(command, what, gentle)?;
    running.captured = Some(captured);
    Ok(running)
}

/// Runs `command` to its end and returns its standard output; failure carries its standard error.
pub fn run(command: Command, what: &str) -> Result<Vec<u8>> {
    start_captured(command, what, libc::SIGTERM)?.wait()?.success(what)
}

/// Runs them all at once, to the end of the last: what each printed.
pub fn together(what: &str, commands: impl Iterator<Item = Result<Command>>) -> Result<Vec<Vec<u8>>> {
    let start = |command: Result<Command>| start_captured(command?, what, libc::SIGTERM);
    let running = commands.map(start).collect::<Result<Vec<_>>>()?;
    running.into_iter().map(|one| one.wait()?.success(what)).collect()
}

impl Ended {
    /// Its standard output, however it ended.
    pub fn stdout(&self) -> &[u8] {
        &self.stdout
    }

    /// The standard output of a process that succeeded.
    pub fn success(self, what: &str) -> Result<Vec<u8>> {
        if self.status.success() {
            return Ok(self.stdout);
        }
        let how = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "an unknown status".to_owned(),
        };
        let said = if self.stderr.trim().is_empty() {
            String::from_utf8_lossy(&self.stdout).into_owned()
        } else {
            self.stderr
        };
        // Every pool in RAM says so, first of all: that is not why.
        let why: Vec<&str> = said.lines().filter(|line| !line.starts_with("SEAWALL EMULATED")).collect();
        bail!("{what} ended with {how}: {}", why.join("\n").trim())
    }
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> Result<bool> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().with_context(|| format!("cannot wait for {}", self.what))?;
        }
        if self.ended.is_some() {
            disown(self.child.id());
        }
        reap_orphans();
        Ok(self.ended.is_some())
    }

    /// Waits until it is ready, at most this long. If it ends instead, the error has what it said.
    pub fn until_ready(mut self, limit: Duration, is_ready: impl Fn() -> bool) -> Result<Self> {
        let end = Instant::now() + limit;
        while !self.has_ended()? {
            if is_ready() {
                return Ok(self);
            }
            ensure!(Instant::now() < end, "{} was not ready within {} s", self.what, limit.as_secs());
            pause(2 * POLL)?;
        }
        let said = self.collect()?;
        bail!("{} did not start: {}{}", self.what, String::from_utf8_lossy(&said.stdout), said.stderr)
    }

    /// Stops it (SIGSTOP), and returns once all its threads are, or once it has ended.
    ///
    /// # Errors
    /// Of waitid(2).
    pub fn stop(&self) -> Result<()> {
        signal(self.pid(), libc::SIGSTOP);
        // Its end, if that came first, is left for whoever asks for it.
        let until = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT;
        // SAFETY: all zeros is a valid siginfo_t, which outlives the call.
        let said = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, self.pid(), &mut info, until)
        };
        if said == 0 {
            return Ok(());
        }
        Err(io::Error::last_os_error()).with_context(|| format!("cannot wait for {} to stop", self.what))
    }

    /// Waits for its end, or ends it when the lab is interrupted.
    pub fn wait(mut self) -> Result<Ended> {
        while !self.has_ended()? {
            check_interrupted()?;
            sleep(POLL);
        }
        self.collect()
    }

    /// Waits for its end, at most this long.
    pub fn wait_for(mut self, limit: Duration) -> Result<Ended> {
        let end = Instant::now() + limit;
        while !self.has_ended()? {
            check_interrupted()?;
            if Instant::now() > end {
                bail!("{} did not end within {} s", self.what, limit.as_secs());
            }
            sleep(POLL);
        }
        self.collect()
    }

    /// What it said on standard error if it ends within this time by itself; if not it is ended.
    pub fn said_within(mut self, limit: Duration) -> Result<Option<String>> {
        let end = Instant::now() + limit;
        while Instant::now() < end {
            if self.has_ended()? {
                return Ok(Some(self.collect()?.stderr));
            }
            pause(2 * POLL)?;
        }
        Ok(None)
    }

    fn collect(&mut self) -> Result<Ended> {
        let status = self.ended.context("the output was read before the process ended")?;
        let [mut stdout, mut stderr] = [Vec::new(), Vec::new()];
        if let Some([out, err]) = &mut self.captured {
            for (file, bytes) in [(out, &mut stdout), (err, &mut stderr)] {
                file.rewind()?;
                file.read_to_end(bytes)?;
            }
        }
        Ok(Ended { status, stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.has_ended().unwrap_or(true) {
            return;
        }
        signal(self.pid(), self.gentle);
        let patience = Instant::now() + Duration::from_secs(10);
        // A second Ctrl-C ends the patience.
        while Instant::now() < patience && INTERRUPTS.load(Ordering::Relaxed) < 2 {
            if self.has_ended().unwrap_or(true) {
                return;
            }
            sleep(POLL);
        }
        tree::kill_tree(self.pid());
        let _ = self.child.wait();
        disown(self.child.id());
    }
}

fn memory_file() -> Result<File> {
    Ok(memfd_create("output", MemfdFlags::CLOEXEC).context("cannot create a file in memory")?.into())
}
