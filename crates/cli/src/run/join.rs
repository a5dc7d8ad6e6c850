//! Start or join the daemon of a pool.
//!
//! Many `run`s may come at once, and a daemon may be about to end: whoever gets the pool's lock serves, all
//! others connect to it. So joining is tried again until there is a daemon that took the directories.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use seawall_daemon::AddRoot;
use seawall_daemon::control::{Added, Control, ControlError};
use seawall_wire::message::Kind;

use crate::commands::daemon::BUSY;

/// How long to wait for a daemon that has the pool and does not answer: it may be recovering or ending.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// How a daemon is started.
pub struct How {
    /// It stays when the last client has gone.
    pub keep: bool,
    /// A watch on foreign writers made with more rights than the daemon will have. Given to the first one.
    pub watch: Option<OwnedFd>,
}

/// A daemon that keeps our directories as long as the connection lives.
pub struct Joined {
    /// The connection.
    pub control: Control,
    /// The daemon, if we started it.
    pub child: Option<Child>,
}

/// Joins the pool's daemon, starting it if need be.
///
/// # Errors
/// What the daemon said when it could not start, or why it refused a directory.
pub fn join(pool: &Path, roots: &[AddRoot], how: &mut How) -> Result<Joined> {
    let begin = Instant::now();
    let mut child = None;
    loop {
        if let Some(control) = Control::connect(pool)? {
            match register(&control, roots) {
                Ok(()) => return Ok(Joined { control, child }),
                // It was about to end; the next one is ours.
                Err(ControlError::Gone | ControlError::Io(_)) => {}
                Err(e) => return Err(e.into()),
            }
        } else {
            reap(&mut child);
            child = start(pool, how)?.or(child);
        }
        if begin.elapsed() > PATIENCE {
            bail!(
                "the pool {} is in use by a daemon that does not answer: `fuser {0}` shows its process",
                pool.display()
            );
        }
        std::thread::sleep(PAUSE);
    }
}

fn register(control: &Control, roots: &[AddRoot]) -> Result<(), ControlError> {
    roots.iter().try_for_each(|root| control.request::<Added>(Kind::AddRoot, root).map(drop))
}

/// Starts a daemon and waits until it listens. `None`: another has the pool.
fn start(pool: &Path, how: &mut How) -> Result<Option<Child>> {
    let mut child = command(pool, how).spawn().context("starting the daemon")?;
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        // The daemon lets go of stderr when it listens.
        stderr.read_to_string(&mut said).context("waiting for the daemon")?;
    }
    match child.try_wait()? {
        None if said.is_empty() => Ok(Some(child)),
        _ => {
            let status = child.wait()?;
            match status.code() {
                Some(code) if code == i32::from(BUSY) => Ok(None),
                Some(0) => Ok(None),
                _ if said.trim().is_empty() => bail!("the daemon ended at once ({status})"),
                _ => bail!("{}", said.trim()),
            }
        }
    }
}

fn command(pool: &Path, how: &mut How) -> Command {
    let exe = std::env::current_exe().ok().filter(|path| path.exists());
    let mut command = Command::new(exe.unwrap_or_else(|| PathBuf::from("/proc/self/exe")));
    command.arg("daemon").arg("--pool").arg(pool);
    if how.keep {
        command.arg("--keep");
    }
    // The daemon must not be its own client.
    command.env_remove("LD_PRELOAD").env_remove("SEAWALL_SOCKET");
    command
        .stdin(how.watch.take().map_or_else(Stdio::null, Stdio::from))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// Lets a dead daemon's process go.
pub fn reap(child: &mut Option<Child>) {
    if child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None))) {
        *child = None;
    }
}
