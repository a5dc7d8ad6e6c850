//! The keepers of a lab's log: each on a host of its own, behind a way that takes its time if that is asked for.
//!
//! What a keeper writes in the background would go to its own host's disk. Here it goes to memory: the disk under test is
//! the database's alone.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::lab::Lab;
use crate::net::{Ends, Host, Relay, ping, ping_all};
use crate::process::{self, Running};

const PORT: u16 = 7700;
/// The port of [`Pong`].
const PONG: u16 = 7799;
const PATIENCE: Duration = Duration::from_secs(10);

/// How many keepers, how many of them confirm a commit, and how long each direction of the way takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    pub keepers: u8,
    pub acks: u8,
    pub delay: Duration,
}

impl Shape {
    /// So many keepers of which more than half confirm.
    pub const fn of(keepers: u8, delay_us: u64) -> Self {
        Self { keepers, acks: keepers / 2 + 1, delay: Duration::from_micros(delay_us) }
    }
}

/// Keepers that run. Fields drop in this order.
pub struct Keepers {
    all: Vec<Keeper>,
    pongs: Vec<Pong>,
    pub shape: Shape,
}

/// A process that answers bare round trips beside a keeper, on the same way. Fields drop in this order.
struct Pong {
    _process: Running,
    way: Option<Relay>,
    at: SocketAddr,
}

/// One keeper. Fields drop in this order.
struct Keeper {
    process: Option<Running>,
    way: Option<Relay>,
    at: SocketAddr,
    directory: PathBuf,
    host: Host,
}

impl Keepers {
    /// Starts them, empty.
    ///
    /// # Errors
    /// If one does not start; of `ip`.
    pub fn start(lab: &Lab, shape: Shape) -> Result<Self> {
        let mut all =
            (0..shape.keepers).map(|_| Keeper::make(lab, shape.delay)).collect::<Result<Vec<_>>>()?;
        all.iter_mut().try_for_each(|keeper| keeper.start(lab))?;
        let pongs = all.iter().map(|keeper| Pong::start(&keeper.host, shape.delay)).collect::<Result<_>>()?;
        Ok(Keepers { all, pongs, shape })
    }

    /// Where a writer reaches them.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.all.iter().map(|keeper| keeper.way.as_ref().map_or(keeper.at, Relay::address))
    }

    /// The median of so many bare round trips on the way to one of them, in microseconds.
    ///
    /// # Errors
    /// If nobody answers.
    pub fn round_trip_us(&self, ends: Ends, times: usize) -> Result<f64> {
        ping(self.pongs.first().context("there are no keepers")?.address(), ends, times)
    }

    /// The same to all of them at once, each over when as many have answered as confirm a commit.
    ///
    /// # Errors
    /// If one of them does not answer.
    pub fn round_trip_of_all_us(&self, times: usize) -> Result<f64> {
        let all: Vec<_> = self.pongs.iter().map(Pong::address).collect();
        ping_all(&all, self.shape.acks.into(), times)
    }

    /// CPU time that they took so far, in seconds.
    pub fn cpu_s(&self) -> f64 {
        let pids = self.all.iter().filter_map(|keeper| Some(keeper.process.as_ref()?.pid()));
        pids.map(process::cpu_seconds).sum()
    }

    /// The process of one of them, if it runs.
    pub fn pid(&self, nth: usize) -> Option<u32> {
        self.all[nth].process.as_ref().map(Running::pid)
    }

    /// One of them gets SIGKILL.
    ///
    /// # Errors
    /// If it does not end.
    pub fn kill(&mut self, nth: usize) -> Result<()> {
        let Some(running) = self.all[nth].process.take() else { return Ok(()) };
        process::signal(running.pid(), libc::SIGKILL);
        running.wait_for(PATIENCE).map(drop)
    }

    /// One that was killed starts again.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start_again(&mut self, lab: &Lab, nth: usize) -> Result<()> {
        self.all[nth].start(lab)
    }
}

impl Pong {
    fn start(host: &Host, delay: Duration) -> Result<Self> {
        let at = host.port(PONG)?;
        let mut command = host.command_as_ourselves(std::env::current_exe()?.as_os_str());
        command.args(["pong", &at.to_string()]);
        let _process = process::start_captured(command, "round trips", libc::SIGTERM)?;
        Ok(Self { _process, way: way(at, delay)?, at })
    }

    /// Where it is reached.
    fn address(&self) -> SocketAddr {
        self.way.as_ref().map_or(self.at, Relay::address)
    }
}

impl Keeper {
    fn make(lab: &Lab, delay: Duration) -> Result<Self> {
        let host = Host::make(&lab.identity)?;
        let at = host.port(PORT)?;
        let directory = PathBuf::from(format!(
            "/dev/shm/seawall-lab-{}-keeper-{}",
            std::process::id(),
            at.to_string().replace(':', "-")
        ));
        lab.fresh_dir(&directory)?;
        Ok(Keeper { process: None, way: way(at, delay)?, at, directory, host })
    }

    fn start(&mut self, lab: &Lab) -> Result<()> {
        let mut command = self.host.command(lab.tools.seawall.as_os_str());
        command.args(["keeper", "serve"]).arg(&self.directory);
        command.args(["--quota", "16G", "--listen", &self.at.to_string()]);
        let listens = || TcpStream::connect(self.at).is_ok();
        let running = process::start_captured(command, "a keeper", libc::SIGTERM)?;
        self.process = Some(running.until_ready(PATIENCE, listens)?);
        Ok(())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.process = None;
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn way(to: SocketAddr, delay: Duration) -> Result<Option<Relay>> {
    (!delay.is_zero()).then(|| Relay::to(to, delay)).transpose()
}
