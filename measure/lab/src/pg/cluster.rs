//! One side's PostgreSQL server: start, wait until it accepts connections, stop, kill.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{DATABASE, SETTINGS, SUPERUSER, TAIL, Variant};
use crate::lab::Lab;
use crate::launch;
use crate::process::{self, Running, run};
use crate::side::Side;

/// A crash recovery is part of a start.
const START_LIMIT: Duration = Duration::from_secs(300);
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// A running server; dropping it ends it.
pub struct Cluster<'a> {
    lab: &'a Lab,
    bin: &'a Path,
    port: String,
    data: PathBuf,
    direct: bool,
    server: Running,
}

/// How a server is started.
pub struct Launch {
    /// Names its log file.
    pub name: String,
    /// Names its socket.
    pub port: String,
    pub data: PathBuf,
    /// Whether the command is the server itself on a mount, whose files nobody may serve any more.
    pub direct: bool,
    /// The server, or what starts it.
    pub command: Command,
}

impl<'a> Cluster<'a> {
    /// Starts the server of `side` on `data` and waits until it accepts connections.
    pub fn start(lab: &'a Lab, bin: &'a Path, side: Side, data: &Path) -> Result<Self> {
        Self::start_as(lab, bin, side, data, &TAIL)
    }

    /// The same for a server that is set up differently.
    pub fn start_as(lab: &'a Lab, bin: &'a Path, side: Side, data: &Path, variant: &Variant) -> Result<Self> {
        let launch = Launch {
            name: side.name().to_owned(),
            port: port(side).to_owned(),
            data: data.to_owned(),
            direct: side == Side::Mount,
            command: server_command(lab, bin, side, data, variant)?,
        };
        Self::launch(lab, bin, launch)
    }

    /// Starts a server and waits until it accepts connections.
    pub fn launch(lab: &'a Lab, bin: &'a Path, launch: Launch) -> Result<Self> {
        let Launch { name, port, data, direct, mut command } = launch;
        let log_path = Self::log_of(lab, &name);
        let log = File::options().create(true).append(true).open(&log_path)?;
        command.stdout(log.try_clone()?).stderr(log);
        // Fast shutdown, also when the lab dies; `seawall run` passes it on.
        let server = process::start(command, &format!("PostgreSQL ({name})"), libc::SIGINT)?;
        let mut cluster = Cluster { lab, bin, port, data, direct, server };
        match cluster.wait_ready() {
            Err(error) if !process::interrupted() => Err(error.context(log_tail(&log_path))),
            other => other.map(|()| cluster),
        }
    }

    /// The log of servers of this name.
    pub fn log_of(lab: &Lab, name: &str) -> PathBuf {
        lab.work.log(&format!("postgres-{name}.log"))
    }

    fn wait_ready(&mut self) -> Result<()> {
        process::wait_until("PostgreSQL starts", START_LIMIT, || {
            ensure!(!self.server.has_ended()?, "PostgreSQL did not start on {}", self.data.display());
            Ok(self.status().is_some_and(|status| status == "ready"))
        })
    }

    /// The postmaster's process id.
    pub fn postmaster(&self) -> Result<u32> {
        if self.direct {
            // Without a launcher; and nobody may serve its files any more.
            return Ok(self.server.pid());
        }
        let path = self.data.join("postmaster.pid");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        text.lines().next().and_then(|line| line.parse().ok()).context("postmaster.pid holds no process id")
    }

    /// What the postmaster says about itself, if its process is one of ours and alive.
    fn status(&self) -> Option<String> {
        let text = fs::read_to_string(self.data.join("postmaster.pid")).ok()?;
        let pid = text.lines().next()?.parse().ok()?;
        let ours = pid == self.server.pid() || process::descendants(self.server.pid()).contains(&pid);
        ours.then(|| text.lines().nth(7).unwrap_or_default().trim().to_owned())
    }

    /// How clients connect, in libpq's words.
    pub fn connection(&self) -> String {
        let (sockets, port) = (self.lab.work.sockets(), &self.port);
        format!("host={} port={port} user={SUPERUSER} dbname={DATABASE}", sockets.display())
    }

    /// A client program of this PostgreSQL, connecting to this server.
    pub fn client(&self, program: &str) -> Command {
        let mut command = self.lab.command(self.bin.join(program));
        command.env("PGHOST", self.lab.work.sockets()).env("PGPORT", &self.port);
        command.env("PGUSER", SUPERUSER).env("PGDATABASE", DATABASE);
        command
    }

    /// Runs one SQL command.
    pub fn sql(&self, sql: &str) -> Result<()> {
        self.query(sql).map(drop)
    }

    /// Runs one SQL command and returns its bare result.
    pub fn query(&self, sql: &str) -> Result<String> {
        let mut psql = self.client("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql]);
        let said = run(psql, &format!("psql ({sql})"))?;
        Ok(String::from_utf8_lossy(&said).trim().to_owned())
    }

    /// Waits until the server answers a query: after a crash of one of its processes it does not at once.
    pub fn wait_answering(&self) -> Result<()> {
        process::wait_until("PostgreSQL answers", START_LIMIT, || Ok(self.sql("SELECT 1").is_ok()))
    }

    /// Kills one process that serves a client; the server then throws all clients out and recovers.
    pub fn kill_one_backend(&self) -> Result<()> {
        let serves = |&pid: &u32| process::command_line(pid).contains("[local]");
        let backend = process::descendants(self.postmaster()?).into_iter().find(serves);
        process::signal(backend.context("no client is connected")?, libc::SIGKILL);
        Ok(())
    }

    /// Kills `seawall run` alone: the server goes on, with nobody above it.
    pub fn kill_launcher(&self) -> Result<()> {
        ensure!(self.server.pid() != self.postmaster()?, "the server was started without a launcher");
        process::signal(self.server.pid(), libc::SIGKILL);
        Ok(())
    }

    /// Shuts down in order (fast mode).
    pub fn stop(self) -> Result<()> {
        process::signal(self.postmaster()?, libc::SIGINT);
        let ended = self.server.wait_for(STOP_LIMIT)?;
        ended.success("PostgreSQL").map(drop)
    }

    /// Kills every process of the server at once with SIGKILL; returns how many there were.
    pub fn kill(self) -> Result<usize> {
        self.kill_with(&[])
    }

    /// The same, with some other processes (and, if there are any, the launcher) in the same instant.
    pub fn kill_with(self, others: &[u32]) -> Result<usize> {
        let postmaster = self.postmaster()?;
        // Stopped, it cannot start another child between listing and killing.
        process::signal(postmaster, libc::SIGSTOP);
        let mut all = process::descendants(postmaster);
        all.push(postmaster);
        if !others.is_empty() {
            all.extend(others);
            all.push(self.server.pid());
        }
        all.sort_unstable();
        all.dedup();
        process::kill_and_wait(&all, STOP_LIMIT)?;
        // Under Seawall the launcher is still there: it sees its command end, drains, and ends.
        self.server.wait_for(STOP_LIMIT)?;
        Ok(all.len())
    }
}

/// Tries to start a bare server on data that may not be ready for one; returns what it said, or `None`
/// if it started (and was stopped again).
pub fn try_bare_start(lab: &Lab, bin: &Path, data: &Path) -> Result<Option<String>> {
    let command = server_command(lab, bin, Side::Fs, data, &TAIL)?;
    let server = process::start_captured(command, "bare PostgreSQL", libc::SIGINT)?;
    Ok(server.said_within(Duration::from_secs(5))?.map(|said| said.trim().to_owned()))
}

fn server_command(lab: &Lab, bin: &Path, side: Side, data: &Path, variant: &Variant) -> Result<Command> {
    let mut args = vec!["-D".into(), data.as_os_str().to_owned()];
    let mut set = |name: &str, value: &str| args.extend(["-c".into(), format!("{name}={value}").into()]);
    // The last one counts.
    let on_seawall = if side == Side::Seawall { variant.on_seawall } else { &[] };
    let settings = SETTINGS.iter().chain(variant.settings).chain(on_seawall);
    settings.for_each(|(name, value)| set(name, value));
    set("port", port(side));
    set("unix_socket_directories", &lab.work.sockets().to_string_lossy());
    set("fsync", if side.is_unsafe() { "off" } else { "on" });
    launch::command(lab, side, variant.preset, data, &bin.join("postgres"), args)
}

/// Names the socket file, so that the sides' servers can run at the same time; no network address is listened on.
fn port(side: Side) -> &'static str {
    match side {
        Side::Fs => "5432",
        Side::Seawall => "5433",
        Side::Mount => "5437",
        Side::Unsafe => "5434",
        Side::Eatmydata => "5435",
        Side::Control => "5436",
    }
}

/// The last lines of a server's log.
pub fn log_tail(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(8)..].join("\n    ");
    format!("{} ends with:\n    {tail}\n", path.display())
}
