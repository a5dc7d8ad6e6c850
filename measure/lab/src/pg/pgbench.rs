//! pgbench runs.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use seawall_load::installed::Tool;
use serde::{Deserialize, Serialize};

use super::Cluster;
use crate::compare::{Ran, Relay, Work};
use crate::process;
use crate::side::Side;

/// Seconds that no run takes: a signal ends it.
const ENDLESS: u64 = 86_400;

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

    /// Runs it on servers that are all up, in turns, after a checkpoint of each.
    ///
    /// # Errors
    /// Of a server or pgbench.
    pub fn in_turns(
        &self,
        clusters: &BTreeMap<Side, Cluster<'_>>,
        sides: &[Side],
        round: usize,
    ) -> Result<BTreeMap<Side, Work>> {
        clusters.values().try_for_each(|cluster| cluster.sql("CHECKPOINT"))?;
        let endless = Bench { seconds: ENDLESS, ..*self };
        // pgbench takes the alarm for its own one, which says that its time is over.
        let relay = Relay::of(self.seconds as f64, round, libc::SIGALRM);
        let ran = relay.run(sides, |side| {
            process::start_captured(endless.command(&clusters[&side]), "pgbench", libc::SIGTERM)
        })?;
        let work = |(side, ran): (Side, Ran)| Ok((side, ran_work(&ran).context(side.title())?));
        ran.into_iter().map(work).collect()
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

/// What it did in its turns. The rate is that of the time after it was connected.
fn ran_work(ran: &Ran) -> Result<Work> {
    let count = Tool::Pgbench.read(&ran.stdout)?.operations.context("pgbench counted no transactions")?;
    let connecting = connecting(&ran.stdout).context("pgbench does not say how long it took to connect")?;
    Ok(Work { rate: count as f64 / ran.time.saturating_sub(connecting).as_secs_f64(), count })
}

fn connecting(output: &str) -> Option<Duration> {
    let line = output.lines().find_map(|line| line.strip_prefix("initial connection time = "))?;
    let ms: f64 = line.strip_suffix(" ms")?.parse().ok()?;
    Some(Duration::from_secs_f64(ms / 1000.0))
}

/// What pgbench reported as changed was changed, and wholly: a history row for each transaction, and each delta
/// in an account too.
pub fn check_work(cluster: &Cluster, reported: u64) -> Result<()> {
    let rows: u64 = cluster.query("SELECT count(*) FROM pgbench_history")?.parse()?;
    ensure!(rows >= reported, "pgbench reported {reported} transactions, but its history has {rows}");
    let deltas = cluster.query("SELECT coalesce(sum(delta), 0) FROM pgbench_history")?;
    let balances = cluster.query("SELECT sum(abalance) FROM pgbench_accounts")?;
    ensure!(
        balances == deltas,
        "pgbench's balances add up to {balances}, but its history adds up to {deltas}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_the_turns_after_it_was_connected() -> Result<()> {
        let stdout = "transaction type: <builtin: simple update>\nduration: 86400 s\n\
                      number of transactions actually processed: 900\nlatency average = 1.000 ms\n\
                      initial connection time = 100.500 ms\ntps = 12.5 (without initial connection time)\n";
        let ran = Ran { stdout: stdout.into(), time: Duration::from_micros(1_000_500) };
        assert_eq!(ran_work(&ran)?, Work { rate: 1000.0, count: 900 });
        Ok(())
    }
}
