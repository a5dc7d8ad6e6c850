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

use anyhow::{Context, Result, bail};

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
    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// What it is.
    pub fn what(&self) -> &str {
        &self.what
    }

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

    /// What it said on standard error so far.
    pub fn said(&self) -> String {
        tail(&text(&self.err))
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

/// A command of a few words.
pub fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}
