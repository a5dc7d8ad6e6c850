//! One side's MariaDB server: start, wait until it accepts connections, stop, kill.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{DATABASE, SETTINGS, UNSAFE, program};
use crate::lab::Lab;
use crate::launch;
use crate::process::{self, Running, run};
use crate::side::{Preset, Side};

/// A crash recovery is part of a start.
const LIMIT: Duration = Duration::from_secs(300);

/// A running server; dropping it ends it.
pub struct Server<'a> {
    lab: &'a Lab,
    /// Of its log and its socket.
    name: String,
    data: PathBuf,
    server: Running,
}

impl<'a> Server<'a> {
    /// Starts the server of `side` on `data` and waits until it accepts connections.
    pub fn start(lab: &'a Lab, side: Side, data: &Path) -> Result<Self> {
        Self::launch(lab, side.name(), data, command(lab, side, data)?)
    }

    /// Starts a server of this name by a command, and waits until it accepts connections.
    pub fn launch(lab: &'a Lab, name: &str, data: &Path, mut command: Command) -> Result<Self> {
        let log_path = Self::log_of(lab, name);
        let log = File::options().create(true).append(true).open(&log_path)?;
        command.stdout(log.try_clone()?).stderr(log);
        let server = process::start(command, &format!("MariaDB ({name})"), libc::SIGTERM)?;
        let mut server = Server { lab, name: name.to_owned(), data: data.to_owned(), server };
        let said = || fs::read_to_string(&log_path).unwrap_or_default();
        server.wait_ready().with_context(|| said().lines().rev().take(20).collect::<Vec<_>>().join("\n"))?;
        server.sql(&format!("CREATE DATABASE IF NOT EXISTS {DATABASE}"))?;
        Ok(server)
    }

    /// The log of servers of this name.
    pub fn log_of(lab: &Lab, name: &str) -> PathBuf {
        lab.work.log(&format!("mariadb-{name}.log"))
    }

    fn wait_ready(&mut self) -> Result<()> {
        process::wait_until("MariaDB starts", LIMIT, || {
            ensure!(!self.server.has_ended()?, "MariaDB did not start on {}", self.data.display());
            Ok(self.sql("DO 0").is_ok())
        })
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        socket(self.lab, &self.name)
    }

    /// Its data directory.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The command-line client, which reads statements and prints bare rows.
    pub fn client(&self) -> Command {
        let mut client = self.lab.command("mariadb");
        client.args(["--no-defaults", "--batch", "--skip-column-names", "--unbuffered", "--user=root"]);
        client.arg(format!("--socket={}", self.socket().display()));
        client
    }

    /// Runs SQL and returns its bare rows.
    pub fn query(&self, sql: &str) -> Result<String> {
        let mut client = self.client();
        client.args(["--execute", sql]);
        let said = run(client, &format!("mariadb ({sql})"))?;
        Ok(String::from_utf8_lossy(&said).trim().to_owned())
    }

    /// Runs SQL.
    pub fn sql(&self, sql: &str) -> Result<()> {
        self.query(sql).map(drop)
    }

    /// The server's own process.
    fn process(&self) -> Result<u32> {
        let program = fs::canonicalize(program()?)?;
        let mut all = process::descendants(self.server.pid());
        all.push(self.server.pid()); // a launcher may become its command
        let is_server = |pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
        all.into_iter().find(is_server).context("the server is not running")
    }

    /// Bytes that the server has caused to be written to a disk since it was started, and bytes that InnoDB
    /// says it has written.
    pub fn written(&self) -> Result<(f64, f64)> {
        let path = format!("/proc/{}/io", self.process()?);
        let io = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let disk = io
            .lines()
            .find_map(|line| line.strip_prefix("write_bytes: "))
            .with_context(|| format!("{path} has no write_bytes"))?
            .parse()?;
        let said = self.query("SHOW GLOBAL STATUS LIKE 'Innodb_data_written'")?;
        let innodb =
            said.split_whitespace().last().context("MariaDB does not report Innodb_data_written")?.parse()?;
        Ok((disk, innodb))
    }

    /// Shuts down in order.
    pub fn stop(self) -> Result<()> {
        process::signal(self.process()?, libc::SIGTERM);
        self.server.wait_for(LIMIT)?.success("MariaDB").map(drop)
    }

    /// Kills the server with SIGKILL.
    pub fn kill(self) -> Result<()> {
        let server = self.process()?;
        self.kill_all(&[server])
    }

    /// Kills the server, the launcher and these processes in the same instant: nobody can tidy up.
    pub fn kill_with(self, others: &[u32]) -> Result<()> {
        // The launcher goes first: one that sees the daemon die starts another.
        let all = [&[self.server.pid()], others, &[self.process()?]].concat();
        self.kill_all(&all)
    }

    fn kill_all(self, all: &[u32]) -> Result<()> {
        process::kill_and_wait(all, LIMIT)?;
        // Under Seawall the launcher is still there: it sees its command end, drains, and ends.
        self.server.wait_for(LIMIT).map(drop)
    }
}

/// Tries to start a bare server on data that may not be ready for one: what it said, or `None` if it started
/// (and was stopped again).
pub fn try_bare_start(lab: &Lab, data: &Path) -> Result<Option<String>> {
    let server = process::start_captured(command(lab, Side::Fs, data)?, "bare MariaDB", libc::SIGTERM)?;
    server.said_within(Duration::from_secs(10))
}

fn command(lab: &Lab, side: Side, data: &Path) -> Result<Command> {
    let unsafe_ones = if side.is_unsafe() { &UNSAFE[..] } else { &[] };
    let args: Vec<&str> = SETTINGS.iter().chain(unsafe_ones).copied().collect();
    let mut command = launch::command(lab, side, Preset::Mariadb, data, &program()?, args)?;
    place(&mut command, lab, side.name(), data);
    Ok(command)
}

/// Where a server's data is, and where it listens.
pub fn place(command: &mut Command, lab: &Lab, name: &str, data: &Path) {
    command.arg(format!("--datadir={}", data.display()));
    command.arg(format!("--socket={}", socket(lab, name).display()));
}

/// Each has its own, so that the servers can run at the same time.
fn socket(lab: &Lab, name: &str) -> PathBuf {
    lab.work.sockets().join(format!("mariadb-{name}"))
}
