//! PostgreSQL under full load: pgbench for the pressure, the ledger load for the proof.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use seawall_load::ledger::Verdict;
use seawall_load::pg::Report;

use super::waiting::{LIMIT, verdict, wait_for_commits};
use crate::lab::Lab;
use crate::pg::{Bench, Cluster, Test};
use crate::process::{Running, start_captured};

const LEDGER_CLIENTS: &str = "4";
const PGBENCH_CLIENTS: usize = 8;

/// Both loads, running until the server is killed.
pub struct PostgresLoad {
    pgbench: Running,
    commits: Running,
    ledger: PathBuf,
}

impl PostgresLoad {
    /// Starts them; the ledger goes on where an earlier load on the same database ended.
    pub fn start(lab: &Lab, cluster: &Cluster, ledger: &Path) -> Result<Self> {
        let seconds = LIMIT.as_secs();
        let pressure = Bench { test: Test::TpcB, clients: PGBENCH_CLIENTS, seconds };
        let pgbench = start_captured(pressure.command(cluster), "pgbench", libc::SIGTERM)?;
        let mut commits = lab.command(&lab.tools.load);
        commits.args(["ledger-pg", "--clients", LEDGER_CLIENTS, "--seconds", &seconds.to_string()]);
        commits.arg("--connect").arg(cluster.connection()).arg("--ledger").arg(ledger);
        let commits = start_captured(commits, "the ledger load", libc::SIGTERM)?;
        Ok(PostgresLoad { pgbench, commits, ledger: ledger.to_owned() })
    }

    /// Waits until this many more commits were acknowledged.
    pub fn wait_for_commits(&self, more: usize) -> Result<()> {
        wait_for_commits(&self.ledger, more)
    }

    /// Waits for the end of both, which lost their connections.
    pub fn end(self) -> Result<Report> {
        let said = self.commits.wait_for(LIMIT)?.success("the ledger load")?;
        let report: Report = serde_json::from_slice(&said)?;
        ensure!(report.acknowledged > 0, "nothing was committed before the kill: {:?}", report.disconnects);
        ensure!(!report.disconnects.is_empty(), "the ledger load ended before the kill");
        self.pgbench.wait_for(LIMIT)?; // fails, as it should
        Ok(report)
    }
}

/// Compares ledger and database on a running server.
pub fn check_postgres(lab: &Lab, cluster: &Cluster, ledger: &Path) -> Result<Verdict> {
    let mut check = lab.command(&lab.tools.load);
    check.arg("check-pg").arg("--connect").arg(cluster.connection()).arg("--ledger").arg(ledger);
    verdict(start_captured(check, "the PostgreSQL check", libc::SIGTERM)?.wait()?)
}
