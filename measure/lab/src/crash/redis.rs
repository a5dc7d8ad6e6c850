//! A Redis server under full load, and a client that notes what was acknowledged.

use std::path::Path;

use anyhow::Result;
use seawall_load::ledger::Verdict;

use super::program::ProgramLoad;
use super::waiting::{LIMIT, compared};
use crate::lab::Lab;
use crate::process::{run, start_captured};
use crate::redis::{Fsync, Server};
use crate::side::Side;

impl ProgramLoad {
    /// Starts a server on `data`, and four clients.
    pub fn redis(lab: &Lab, data: &Path, ledger: &Path) -> Result<Self> {
        let server = Server::start(lab, Side::Seawall, data, Fsync::Always)?;
        let mut client = lab.command(&lab.tools.load);
        client.arg("ledger-redis").arg("--socket").arg(server.socket()).arg("--ledger").arg(ledger);
        client.args(["--seconds", &LIMIT.as_secs().to_string()]);
        let client = start_captured(client, "the Redis load", libc::SIGTERM)?;
        let (launcher, program) = server.into_parts();
        Ok(Self::of(launcher, program, ledger, Some(client)))
    }
}

/// Starts Redis on `data` as `side` does, compares with the ledger, stops it, and lets Redis check its log.
pub fn check_redis(lab: &Lab, side: Side, data: &Path, ledger: &Path) -> Result<Verdict> {
    let server = Server::start(lab, side, data, Fsync::Always)?;
    let socket = server.socket().display().to_string();
    let verdict = compared(lab.command(&lab.tools.load), "check-redis", &["--socket", &socket], ledger)?;
    server.stop()?;
    let mut checker = lab.command("redis-check-aof");
    checker.arg(data.join("appendonlydir/appendonly.aof.manifest"));
    run(checker, "redis-check-aof")?;
    Ok(verdict)
}
