//! An etcd under full load, and a client that notes what was acknowledged.

use std::path::Path;

use anyhow::Result;
use seawall_load::ledger::Verdict;

use super::program::ProgramLoad;
use super::waiting::{LIMIT, compared};
use crate::etcd::Server;
use crate::lab::Lab;
use crate::process::{run, start_captured};
use crate::side::Side;

/// Enough that etcd begins another segment of its log (64 MB) while a test runs.
const VALUE_BYTES: &str = "65536";
/// Transactions between two snapshots of etcd's log: some happen while a test runs.
const SNAPSHOTS: &[&str] = &["--snapshot-count=500"];

impl ProgramLoad {
    /// Starts a member on `data`, and four clients.
    pub fn etcd(lab: &Lab, side: Side, data: &Path, ledger: &Path) -> Result<Self> {
        let server = Server::start(lab, side, data, SNAPSHOTS)?;
        let mut client = lab.command(&lab.tools.load);
        client.args(["ledger-etcd", "--bytes", VALUE_BYTES, "--connect", server.address(), "--ledger"]);
        client.arg(ledger).args(["--seconds", &LIMIT.as_secs().to_string()]);
        let client = start_captured(client, "the etcd load", libc::SIGTERM)?;
        let (server, program) = server.into_parts();
        Ok(Self::of(server, program, ledger, Some(client)))
    }
}

/// Starts etcd on `data` as `side` does, compares with the ledger, stops it, and lets etcd check its store.
pub fn check_etcd(lab: &Lab, side: Side, data: &Path, ledger: &Path) -> Result<Verdict> {
    let server = Server::start(lab, side, data, SNAPSHOTS)?;
    let connect = ["--connect", server.address()];
    let verdict = compared(lab.command(&lab.tools.load), "check-etcd", &connect, ledger)?;
    server.stop()?;
    let mut checker = lab.command("etcdctl");
    checker.env("ETCDCTL_API", "3").args(["snapshot", "status"]).arg(data.join("member/snap/db"));
    run(checker, "etcdctl snapshot status")?;
    Ok(verdict)
}
