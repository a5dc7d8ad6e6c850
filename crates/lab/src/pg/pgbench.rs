//! pgbench runs.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use seawall_load::installed::Tool;
use serde::{Deserialize, Serialize};

use super::Cluster;
use crate::compare::slices;
use crate::process::run;

/// pgbench's built-in scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Test {
    /// `-N`: one account and a history row; clients hardly meet.
    #[serde(rename = "simple-update")]
    SimpleUpdate,
    /// TPC-B-like: all clients also update a few shared branch rows.
    #[serde(rename = "tpcb")]
    TpcB,
    /// `-S`: reads one account.
    #[serde(rename = "select-only")]
    SelectOnly,
}

impl Test {
    /// Those that wait for redo.
    pub const UPDATING: [Test; 2] = [Test::SimpleUpdate, Test::TpcB];

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Test::SimpleUpdate => "simple-update",
            Test::TpcB => "tpcb",
            Test::SelectOnly => "select-only",
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Test::SimpleUpdate => "simple-update",
            Test::TpcB => "TPC-B-like",
            Test::SelectOnly => "select-only",
        }
    }

    /// True if its transactions change anything: each then leaves a row in the history.
    pub fn updates(self) -> bool {
        self != Test::SelectOnly
    }
}

/// One run's shape.
#[derive(Clone, Copy, Debug)]
pub struct Bench {
    pub test: Test,
    pub clients: usize,
    pub seconds: u64,
}

impl Bench {
    /// `1 client`, `4 clients`
    pub fn clients_in_words(&self) -> String {
        if self.clients == 1 { "1 client".to_owned() } else { format!("{} clients", self.clients) }
    }

    /// The same in slices: how many, and one of them.
    pub fn slices(&self) -> (usize, Bench) {
        // Its connections are new in each.
        let slices = slices(self.seconds as f64, 2.0);
        (slices, Bench { seconds: self.seconds / slices as u64, ..*self })
    }

    /// Runs it (after a checkpoint, so that all sides start alike).
    pub fn measure(&self, cluster: &Cluster) -> Result<Measured> {
        let output = run(self.command(cluster), "pgbench")?;
        parse(&String::from_utf8_lossy(&output))
    }

    /// The command; no vacuum before it: that would empty the history table the check adds up.
    pub fn command(&self, cluster: &Cluster) -> Command {
        let mut command = cluster.client("pgbench");
        let script = match self.test {
            Test::SimpleUpdate => "simple-update",
            Test::TpcB => "tpcb-like",
            Test::SelectOnly => "select-only",
        };
        let threads = self.clients.min(2).to_string();
        command.args(["-n", "-b", script, "-j", &threads]);
        command.args(["-c", &self.clients.to_string(), "-T", &self.seconds.to_string()]);
        command
    }
}

/// What pgbench reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Transactions a second.
    pub tps: f64,
    pub transactions: u64,
}

fn parse(output: &str) -> Result<Measured> {
    let figures = Tool::Pgbench.read(output)?;
    let transactions = figures.operations.context("pgbench counted nothing")?;
    Ok(Measured { tps: figures.per_second, transactions })
}

/// What pgbench reported as changed was changed, and wholly: a history row for each transaction, and each delta
/// in an account too.
pub fn check_work(cluster: &Cluster, reported: u64) -> Result<()> {
    let rows: u64 = cluster.query("SELECT count(*) FROM pgbench_history")?.parse()?;
    ensure!(rows >= reported, "pgbench reported {reported} transactions, its history has {rows}");
    let deltas = cluster.query("SELECT coalesce(sum(delta), 0) FROM pgbench_history")?;
    let balances = cluster.query("SELECT sum(abalance) FROM pgbench_accounts")?;
    ensure!(balances == deltas, "pgbench's balances add up to {balances}, its history to {deltas}");
    Ok(())
}
