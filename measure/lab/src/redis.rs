//! One side's Redis server: start, wait until it answers, stop.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use seawall_load::redis::Connection;

use crate::lab::Lab;
use crate::launch;
use crate::process::{Running, start_captured};
use crate::side::{Preset, Side};
use crate::tools::find_in_path;

const LIMIT: Duration = Duration::from_secs(60);

/// Redis's `appendfsync`.
#[derive(Clone, Copy)]
pub enum Fsync {
    /// A reply comes after the log's fsync.
    Always,
    /// Never: not durable.
    No,
}

/// The settings of every server, whatever its data.
pub const SETTINGS: [&str; 10] = [
    "--port",
    "0",
    "--appendonly",
    "yes",
    "--appendfsync",
    "always",
    "--save",
    "",
    // The log is rewritten when a test says so, not in the middle of a measurement.
    "--auto-aof-rewrite-percentage",
    "0",
];

/// Where a server's data is, and where it listens.
pub fn place(command: &mut Command, lab: &Lab, name: &str, data: &Path) {
    command.arg("--dir").arg(data).arg("--unixsocket").arg(socket(lab, name));
}

fn socket(lab: &Lab, name: &str) -> PathBuf {
    lab.work.sockets().join(format!("redis-{name}"))
}

/// A running server; dropping it ends it.
pub struct Server {
    launcher: Running,
    program: PathBuf,
    socket: PathBuf,
}

/// The program.
pub fn program() -> Result<PathBuf> {
    find_in_path("redis-server").context("Redis is not installed: apt-get install redis-server")
}

impl Server {
    /// Starts it on `data` and waits until it answers.
    pub fn start(lab: &Lab, side: Side, data: &Path, fsync: Fsync) -> Result<Self> {
        let program = program()?;
        let fsync = match fsync {
            Fsync::Always => "always",
            Fsync::No => "no",
        };
        let mut command = launch::command(lab, side, Preset::Redis, data, &program, SETTINGS)?;
        place(&mut command, lab, side.name(), data);
        command.args(["--appendfsync", fsync]);
        Self::launch(lab, side.name(), command)
    }

    /// Starts a server of this name by a command, and waits until it answers.
    pub fn launch(lab: &Lab, name: &str, command: Command) -> Result<Self> {
        let (program, socket) = (program()?, socket(lab, name));
        let _ = std::fs::remove_file(&socket);
        let answers = || Connection::open(&socket).and_then(|mut redis| redis.call(&["PING"])).is_ok();
        let launcher = start_captured(command, "Redis", libc::SIGTERM)?.until_ready(LIMIT, answers)?;
        Ok(Self { launcher, program: std::fs::canonicalize(program)?, socket })
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The process that was started, and the program that runs in it or below it.
    pub fn into_parts(self) -> (Running, PathBuf) {
        (self.launcher, self.program)
    }

    /// Ends it in order.
    pub fn stop(self) -> Result<()> {
        Connection::open(&self.socket)?.send(&["SHUTDOWN", "NOSAVE"])?;
        self.launcher.wait_for(LIMIT)?.success("Redis").map(drop)
    }
}
