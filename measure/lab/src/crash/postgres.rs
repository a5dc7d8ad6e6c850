//! PostgreSQL under full load: pgbench for the pressure, the ledger load for the proof.

use std::path::Path;

use anyhow::{Result, ensure};
use seawall_load::ledger::Verdict;
use seawall_load::pg::Report;

use super::waiting::{Commits, LIMIT, compared};
use crate::lab::Lab;
use crate::pg::{Bench, Cluster, Test};
use crate::process::{Running, start_captured};

const LEDGER_CLIENTS: &str = "4";
const PGBENCH_CLIENTS: usize = 8;

/// Both loads, running until the server is killed.
pub struct PostgresLoad {
    pgbench: Running,
    commits: Commits,
}

impl PostgresLoad {
    /// Starts them; the ledger goes on where an earlier load on the same database ended.
    pub fn start(lab: &Lab, cluster: &Cluster, ledger: &Path) -> Result<Self> {
        let seconds = LIMIT.as_secs();
        let pressure = Bench { test: Test::TpcB, clients: PGBENCH_CLIENTS, seconds };
        let pgbench = start_captured(pressure.command(cluster), "pgbench", libc::SIGTERM)?;
        let mut commits = lab.command(&lab.tools.load);
        commits.args(["ledger-pg", "--clients", LEDGER_CLIENTS, "--connect", &cluster.connection()]);
        Ok(PostgresLoad { pgbench, commits: Commits::start(commits, ledger)? })
    }

    /// Waits until this many more commits were acknowledged.
    pub fn wait_for_commits(&self, more: usize) -> Result<()> {
        self.commits.wait_for(more)
    }

    /// Waits for the end of both, which lost their connections.
    pub fn end(self) -> Result<Report> {
        let report: Report = self.commits.end()?;
        ensure!(report.acknowledged > 0, "nothing was committed before the kill: {:?}", report.disconnects);
        ensure!(!report.disconnects.is_empty(), "the ledger load ended before the kill");
        self.pgbench.wait_for(LIMIT)?; // fails, as it should
        Ok(report)
    }
}

/// Compares ledger and database on a running server.
pub fn check_postgres(lab: &Lab, cluster: &Cluster, ledger: &Path) -> Result<Verdict> {
    compared(lab.command(&lab.tools.load), "check-pg", &["--connect", &cluster.connection()], ledger)
}
