//! pgbench runs.

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::Cluster;
use crate::process::run;

/// pgbench's built-in scripts that commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Test {
    /// `-N`: one account and a history row; clients hardly meet.
    #[serde(rename = "simple-update")]
    SimpleUpdate,
    /// TPC-B-like: all clients also update a few shared branch rows.
    #[serde(rename = "tpcb")]
    TpcB,
}

impl Test {
    /// All of them.
    pub const ALL: [Test; 2] = [Test::SimpleUpdate, Test::TpcB];

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Test::SimpleUpdate => "simple-update",
            Test::TpcB => "tpcb",
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Test::SimpleUpdate => "simple-update",
            Test::TpcB => "TPC-B-like",
        }
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
    /// Runs it (after a checkpoint, so that all sides start alike) and returns transactions a second.
    pub fn measure(&self, cluster: &Cluster) -> Result<f64> {
        let output = run(self.command(cluster), "pgbench")?;
        parse_tps(&String::from_utf8_lossy(&output))
    }

    /// The command; no vacuum before it: that would empty the history table the check adds up.
    pub fn command(&self, cluster: &Cluster) -> Command {
        let mut command = cluster.client("pgbench");
        let script = match self.test {
            Test::SimpleUpdate => "simple-update",
            Test::TpcB => "tpcb-like",
        };
        let threads = self.clients.min(2).to_string();
        command.args(["-n", "-b", script, "-j", &threads]);
        command.args(["-c", &self.clients.to_string(), "-T", &self.seconds.to_string()]);
        command
    }
}

fn parse_tps(output: &str) -> Result<f64> {
    if let Some(failed) = output.lines().find_map(|l| l.strip_prefix("number of failed transactions: "))
        && !failed.starts_with("0 ")
    {
        bail!("pgbench reports failed transactions: {failed}");
    }
    let value = output.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next());
    let value = value.with_context(|| format!("pgbench reported no tps:\n{output}"))?;
    value.parse().with_context(|| format!("pgbench reported tps = {value}"))
}

#[cfg(test)]
mod tests {
    use super::parse_tps;

    #[test]
    fn reads_pgbench() -> anyhow::Result<()> {
        let good =
            "number of failed transactions: 0 (0.000%)\ntps = 1234.5 (without initial connection time)\n";
        assert_eq!(parse_tps(good)?, 1234.5);
        assert!(parse_tps(&good.replace(": 0 ", ": 3 ")).is_err());
        assert!(parse_tps("nothing").is_err());
        Ok(())
    }
}
