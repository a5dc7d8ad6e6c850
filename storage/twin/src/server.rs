//! Starting servers: the primary as its command says, the twin with what makes it one.
//!
//! What differs from the command is one file more in the configuration, which the server reads last (`--include`): no
//! secret is among the arguments, which everybody on the host can read.

#![allow(unsafe_code)] // What happens between fork and exec.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use anyhow::{Context, Result, bail};
use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid as Number, Signal, kill_process};

use crate::address::Address;
use crate::control::USER;
use crate::process::{Pid, exit_status, is_dead};
use crate::settings::Settings;

/// The first version whose append-only file has a manifest.
const OLDEST: u32 = 7;

/// A server's process.
pub struct Server {
    /// `None`: somebody else started it, so nobody tells us how it ended.
    child: Option<Child>,
    pid: Pid,
    fd: OwnedFd,
}

impl Server {
    /// Starts a server whose configuration ends with `addition`. It outlives us.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(command: &[OsString], addition: &Path) -> Result<Self> {
        let (program, arguments) =
            command.split_first().context("no server is named: give its command behind --")?;
        let mut command = Command::new(program);
        command.args(arguments).arg("--include").arg(addition).process_group(0);
        // SAFETY: between fork and exec only pthread_sigmask(3) is called, which is async-signal-safe.
        unsafe { command.pre_exec(|| SigSet::empty().thread_set_mask().map_err(Into::into)) };
        let child = command.spawn().with_context(|| format!("cannot start {}", program.to_string_lossy()))?;
        let pid = Pid::of(child.id() as i32)?;
        Ok(Self { fd: pid.open()?, child: Some(child), pid })
    }

    /// Takes on one that runs.
    ///
    /// # Errors
    /// If it does not.
    pub fn adopt(number: i32) -> Result<Self> {
        let pid = Pid::of(number)?;
        Ok(Self { child: None, fd: pid.open()?, pid })
    }

    /// Its number.
    pub fn number(&self) -> i32 {
        self.pid.number
    }

    /// What it forks is in this group.
    pub fn group(&self) -> i32 {
        self.pid.group
    }

    /// True if it will never write again.
    pub fn is_dead(&self) -> bool {
        is_dead(self.pid.number)
    }

    /// Waits until the kernel has freed everything. `None`: it was somebody else's child.
    pub fn wait(&mut self) -> Option<ExitStatus> {
        if let Some(child) = &mut self.child {
            return child.wait().ok();
        }
        let _ = poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], None);
        None
    }

    /// How a dead one ended, as wait(2) will say, before it can be waited for. `None`: it has gone.
    pub fn exit_status(&self) -> Option<i32> {
        exit_status(self.pid.number)
    }

    /// Sends it a signal. One that is gone needs none.
    pub fn signal(&self, signal: Signal) {
        // It is not waited for before it is dropped, so the number is its own.
        if let Some(number) = Number::from_raw(self.pid.number).filter(|_| self.pid.lives()) {
            let _ = kill_process(number, signal);
        }
    }
}

impl AsFd for Server {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A server of this version can have a twin.
///
/// # Errors
/// If it is too old.
pub fn check_version(program: &OsString) -> Result<()> {
    let name = program.to_string_lossy();
    let said =
        Command::new(program).arg("--version").output().with_context(|| format!("cannot start {name}"))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let version = said.split("v=").nth(1).and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    match version {
        Some(version) if version >= OLDEST => Ok(()),
        Some(version) => bail!(
            "{name} is of version {version}: before {OLDEST} a rewrite puts another file in the place of the \
             append-only file, and a follower cannot tell where the commands go on"
        ),
        None => bail!("{name} does not tell its version: is it a Redis server? ({})", said.trim()),
    }
}

/// What is added to a primary's configuration.
pub fn primary_addition(directory: &Path, address: &Address) -> String {
    let mut text = lines(&[("daemonize", "no"), ("supervised", "no"), ("dir", &directory.to_string_lossy())]);
    // The same path in whatever directory it runs.
    text.extend(address.socket.iter().map(|path| lines(&[("unixsocket", &path.to_string_lossy())])));
    text
}

/// What a twin needs to know.
pub struct Twin<'a> {
    /// Its own directory.
    pub directory: &'a Path,
    /// Where it listens, for us and later for clients.
    pub socket: &'a Path,
    /// Where the feed listens.
    pub feed: u16,
    /// What it, and we, prove ourselves by.
    pub token: &'a str,
}

impl Twin<'_> {
    /// What is added to its configuration.
    pub fn addition(&self) -> String {
        let port = self.feed.to_string();
        let mut text = lines(&[
            ("dir", &self.directory.to_string_lossy()),
            ("port", "0"),
            ("tls-port", "0"),
            ("unixsocket", &self.socket.to_string_lossy()),
            ("daemonize", "no"),
            ("supervised", "no"),
            ("pidfile", ""),
            ("save", ""),
            // It is durable when it takes over, and until then the primary is.
            ("appendfsync", "no"),
            ("tls-replication", "no"),
            ("masteruser", USER),
            ("masterauth", self.token),
            ("replica-read-only", "yes"),
            ("replica-serve-stale-data", "yes"),
        ]);
        text.push_str(&format!("user {USER} on >{} ~* &* +@all\nreplicaof 127.0.0.1 {port}\n", self.token));
        text
    }
}

/// What is set back when a twin becomes the primary: names and values of CONFIG SET.
pub fn set_back(settings: &Settings) -> Vec<(&'static str, String)> {
    let defaults = [
        ("appendfsync", "everysec"),
        ("save", "3600 1 300 100 60 10000"),
        ("replica-read-only", "yes"),
        ("replica-serve-stale-data", "yes"),
    ];
    defaults.map(|(name, default)| (name, settings.text(name).unwrap_or(default).to_owned())).into()
}

fn lines(settings: &[(&str, &str)]) -> String {
    let quoted = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"");
    settings.iter().map(|(name, value)| format!("{name} \"{}\"\n", quoted(value))).collect()
}
