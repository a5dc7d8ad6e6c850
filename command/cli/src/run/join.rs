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
use seawall_daemon::cache::CacheOptions;
use seawall_daemon::control::{Added, Control, ControlError, Stop, Stopped};
use seawall_daemon::status::Status;
use seawall_wire::message::Kind;

use crate::cache;
use crate::commands::ask::wait_for_end;
use crate::commands::daemon::BUSY;

/// How long to wait for a daemon that has the pool and does not answer: it may be recovering or ending.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// How a daemon is started.
pub struct How {
    /// It stays when the last client has gone.
    pub keep: bool,
    /// The pool is recovered when the machine starts after a crash.
    pub boot: bool,
    /// A watch on foreign writers made with more rights than the daemon will have. Given to the first one.
    pub watch: Option<OwnedFd>,
    /// The block cache it has.
    pub cache: Option<CacheOptions>,
}

/// A daemon that keeps our directories as long as the connection lives.
struct Joined {
    /// The connection.
    control: Control,
    /// The daemon, if we started it.
    child: Option<Child>,
}

/// A place at the daemon of a pool, on behalf of whoever uses the log: a daemon that dies is replaced.
pub struct Link {
    pool: PathBuf,
    roots: Vec<AddRoot>,
    how: How,
    joined: Joined,
}

impl Link {
    /// Joins.
    ///
    /// # Errors
    /// What the daemon said when it could not start, or why it refused a directory.
    pub fn new(pool: PathBuf, roots: Vec<AddRoot>, mut how: How) -> Result<Self> {
        let joined = join(&pool, &roots, &mut how)?;
        // If somebody else's daemon serves, the watch is not needed; held here it would stop opens.
        how.watch = None;
        Ok(Self { pool, roots, how, joined })
    }

    /// The pool.
    pub fn pool(&self) -> &Path {
        &self.pool
    }

    /// The directories.
    pub fn roots(&self) -> &[AddRoot] {
        &self.roots
    }

    /// What the daemon says of itself, if it answers.
    pub fn status(&self) -> Option<Status> {
        self.joined.control.request(Kind::Status, &()).ok()
    }

    /// The connection.
    pub fn control(&self) -> &Control {
        &self.joined.control
    }

    /// The daemon died: a new one takes the live log over. False if none does; it reports that unless the user has
    /// been `told` before. Until then every fsync is real or in the log.
    pub fn replace(&mut self, told: bool) -> bool {
        reap(&mut self.joined.child);
        match join(&self.pool, &self.roots, &mut self.how) {
            Ok(joined) => {
                self.joined = joined;
                errln!("seawall: the daemon had ended; a new one has taken over");
                true
            }
            Err(e) => {
                if !told {
                    errln!(
                        "seawall: the daemon ended and no new one takes over; nothing is lost but speed: \
                         {e:#}"
                    );
                }
                false
            }
        }
    }

    /// True if this is the daemon that we started, which has ended: it is reaped here.
    pub fn reaps(&mut self, process: u32) -> bool {
        let is_it = self.joined.child.as_ref().is_some_and(|child| child.id() == process);
        if is_it {
            reap(&mut self.joined.child);
        }
        is_it
    }

    /// Has the daemon drain and close if nobody else is left, and waits until it has ended, unless it was started to
    /// stay. Otherwise it goes on without us: the answer says for whom. `None`: with `--keep` we leave it alone.
    ///
    /// # Errors
    /// What the daemon said, or that it is gone. The log is kept.
    pub fn leave(&mut self) -> Result<Option<Stopped>, ControlError> {
        if self.how.keep {
            return Ok(None);
        }
        let stopped: Stopped =
            self.joined.control.request(Kind::Stop, &Stop { if_idle: true, stay: false })?;
        if stopped.ended && !stopped.stays {
            self.wait_for_end();
        }
        Ok(Some(stopped))
    }

    fn wait_for_end(&mut self) {
        if let Some(mut child) = self.joined.child.take() {
            // Its exit code is in its log.
            let _ = child.wait();
        } else if let Ok(Some(control)) = Control::connect(&self.pool) {
            wait_for_end(&self.pool, &control);
        }
    }
}

/// Joins the pool's daemon, starting it if need be.
///
/// # Errors
/// What the daemon said when it could not start, or why it refused a directory.
fn join(pool: &Path, roots: &[AddRoot], how: &mut How) -> Result<Joined> {
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
            if let Some(started) = start(pool, how)? {
                // It listens.
                child = Some(started);
                continue;
            }
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
    let mut child = command(pool, how).spawn().context("cannot start the daemon")?;
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        // The daemon lets go of stderr when it listens.
        stderr.read_to_string(&mut said).context("cannot wait for the daemon")?;
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
    if !how.boot {
        command.arg("--no-boot");
    }
    command.args(how.cache.iter().flat_map(cache::arguments));
    // The daemon must not be its own client.
    command.env_remove("LD_PRELOAD").env_remove("SEAWALL_SOCKET");
    command
        .stdin(how.watch.take().map_or_else(Stdio::null, Stdio::from))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// Lets a dead daemon's process go.
fn reap(child: &mut Option<Child>) {
    if child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None))) {
        *child = None;
    }
}
