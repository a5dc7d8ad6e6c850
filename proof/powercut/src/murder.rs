//! kill -9 of one process in the machine, some time before its power fails.

use std::fs;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use fastrand::Rng;
use seawall_media::process;

/// Kills Seawall's daemon.
///
/// # Errors
/// If there is none.
pub fn of_daemon() -> Result<()> {
    of_seawall("daemon")
}

/// Kills the process that serves a guest's disk.
///
/// # Errors
/// If there is none.
pub fn of_disk() -> Result<()> {
    of_seawall("disk")
}

fn of_seawall(word: &str) -> Result<()> {
    let found = processes().find(|(_, words)| {
        words.first().is_some_and(|program| program.ends_with("seawall"))
            && words.get(1).is_some_and(|second| second == word)
    });
    let (pid, _) = found.with_context(|| format!("seawall {word} is not running"))?;
    kill(pid, Signal::SIGKILL).with_context(|| format!("cannot kill seawall {word}"))
}

/// Kills the process that serves the mount.
///
/// # Errors
/// If there is none.
pub fn of_mount() -> Result<()> {
    let server = processes().find(|(_, words)| words.iter().any(|word| word == "--serving"));
    let (pid, _) = server.context("no mount is served")?;
    kill(pid, Signal::SIGKILL).context("cannot kill the mount's process")
}

/// Kills any process of the database: a server process of PostgreSQL, the server of MariaDB or Redis, a program
/// that writes to SQLite or to a store.
///
/// # Errors
/// If there is none.
pub fn of_database(rng: &mut Rng) -> Result<()> {
    let found: Vec<Pid> = processes()
        .filter(|(_, words)| {
            let program = words.first().map_or("", String::as_str);
            // Server processes say `postgres: what they do`; the postmaster's end would be the server's.
            program.starts_with("postgres: ")
                || ["/mariadbd", "/seawall-rocksdb", "/seawall-lmdb"].iter().any(|end| program.ends_with(end))
                || program == "etcd"
                || program.contains("redis-server ")
                || program.ends_with("seawall-load") && ["sqlite", "files"].contains(&words[1].as_str())
        })
        .map(|(pid, _)| pid)
        .collect();
    anyhow::ensure!(!found.is_empty(), "no process of the database is running");
    kill(found[rng.usize(..found.len())], Signal::SIGKILL).context("cannot kill a process of the database")
}

/// Everybody, with the words of their command lines.
fn processes() -> impl Iterator<Item = (Pid, Vec<String>)> {
    process::all().map(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        (Pid::from_raw(pid.cast_signed()), words.collect())
    })
}
