//! Programs inside a machine: started, waited for, and what they said.
//!
//! Output goes to files in the machine's memory, not through pipes: a daemon that inherits a pipe would keep
//! its reader waiting. Nothing is killed here on the way out: programs end with their machine.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Nothing that a database's programs are asked for takes longer.
pub const LIMIT: Duration = Duration::from_secs(120);
/// Longer than any round, in seconds.
pub const FOREVER: &str = "600";
const POLL: Duration = Duration::from_millis(5);

/// How a program ended, and what it said.
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Ended {
    /// True if it said these words.
    pub fn said(&self, words: &str) -> bool {
        self.stdout.contains(words) || self.stderr.contains(words)
    }

    /// What is wrong if a checker called `what` has ended so.
    pub fn problem(&self, what: &str) -> Option<String> {
        (!self.status.success()).then(|| format!("{what}: {self}"))
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.status, tail(&self.stderr), tail(&self.stdout))
    }
}

/// A program at work.
pub struct Running {
    child: Child,
    what: String,
    out: PathBuf,
    err: PathBuf,
}

/// Starts `command`.
pub fn start(mut command: Command, what: &str) -> Result<Running> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let [out, err] = ["out", "err"].map(|stream| PathBuf::from(format!("/tmp/{number}.{stream}")));
    command.stdin(Stdio::null()).stdout(File::create(&out)?).stderr(File::create(&err)?);
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.spawn().with_context(|| format!("cannot start {what} ({program})"))?;
    Ok(Running { child, what: what.to_owned(), out, err })
}

/// Runs `command` to its end.
pub fn finish(command: Command, what: &str, limit: Duration) -> Result<Ended> {
    start(command, what)?.wait(limit)
}

/// Runs `command` to its end, which must be a good one.
pub fn run(command: Command, what: &str, limit: Duration) -> Result<Ended> {
    let ended = finish(command, what, limit)?;
    if ended.status.success() { Ok(ended) } else { bail!("{what} ended with {ended}") }
}

impl Running {
    /// How it ended, if it has.
    pub fn ended(&mut self) -> Result<Option<Ended>> {
        let status = self.child.try_wait().with_context(|| format!("cannot wait for {}", self.what))?;
        Ok(status.map(|status| Ended { status, stdout: text(&self.out), stderr: text(&self.err) }))
    }

    /// An error if it has ended.
    pub fn must_run(&mut self) -> Result<()> {
        match self.ended()? {
            Some(ended) => bail!("{} ended with {ended}", self.what),
            None => Ok(()),
        }
    }

    /// Waits until it is ready.
    pub fn wait_ready(&mut self, limit: Duration, mut is_ready: impl FnMut() -> bool) -> Result<()> {
        let deadline = Instant::now() + limit;
        while !is_ready() {
            self.must_run()?;
            ensure!(Instant::now() < deadline, "{} did not get ready: {}", self.what, tail(&text(&self.err)));
            sleep(POLL);
        }
        Ok(())
    }

    /// Asks it by this signal to end, and waits until it has.
    pub fn stop(self, signal: Signal, limit: Duration) -> Result<Ended> {
        let pid = Pid::from_raw(self.child.id() as i32);
        kill(pid, signal).with_context(|| format!("cannot ask {} to end", self.what))?;
        self.wait(limit)
    }

    /// The same; it must be a good end.
    pub fn stop_in_order(self, signal: Signal, limit: Duration) -> Result<()> {
        let what = self.what.clone();
        let ended = self.stop(signal, limit)?;
        ensure!(ended.status.success(), "{what} ended with {ended}");
        Ok(())
    }

    /// Waits for its end.
    pub fn wait(mut self, limit: Duration) -> Result<Ended> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(ended) = self.ended()? {
                return Ok(ended);
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                bail!(
                    "{} did not end within {} s: {} {}",
                    self.what,
                    limit.as_secs(),
                    tail(&text(&self.err)),
                    tail(&text(&self.out))
                );
            }
            sleep(POLL);
        }
    }
}

fn text(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// The last lines.
pub fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n    ")
}

/// An error if there is no such program. `harmless` is an argument with which it does nothing.
pub fn installed(name: &str, harmless: &str) -> Result<()> {
    let found = Command::new(name).arg(harmless).output();
    ensure!(found.is_ok(), "{name} is not installed: make deps");
    Ok(())
}

/// A command of a few words.
pub fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}
