//! The load of a case, on a running server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use seawall_load::slob::Outcome;
use seawall_load::tprocc;
use seawall_load::tprocc::input::Kind;

use crate::case::{Case, Measure, Slob, Tprocc};
use crate::lab::Lab;
use crate::pg::transactions::{self, Transaction};
use crate::pg::{Bench, Cluster, check_work};
use crate::process::{self, Running};

/// What a load did.
pub struct Loaded {
    pub commits: u64,
    /// Measures that it knows itself.
    pub figures: Vec<(Measure, f64)>,
}

/// Makes the load's tables on a running server.
pub fn create(lab: &Lab, case: &Case, cluster: &Cluster<'_>) -> Result<()> {
    if let Some(pgbench) = &case.pgbench {
        let mut init = cluster.client("pgbench");
        init.args(["-i", "-q", "-s", &pgbench.scale.to_string()]);
        process::run(init, "pgbench -i")?;
    }
    if let Some(slob) = &case.slob {
        process::run(
            slob_command(lab, slob, cluster, "setup", &ledger(lab, None)),
            "seawall-load slob setup",
        )?;
    }
    if let Some(Tprocc { warehouses, items, customers, .. }) = &case.tprocc {
        let mut setup = load_command(lab, cluster, ["tprocc", "setup"], &ledger(lab, None));
        for (name, value) in [("--warehouses", warehouses), ("--items", items), ("--customers", customers)] {
            setup.arg(name).arg(value.to_string());
        }
        process::run(setup, "seawall-load tprocc setup")?;
    }
    // Every turn begins with a new server: with its tables in its buffers, not with reads.
    cluster.sql("CREATE EXTENSION pg_prewarm")
}

/// Reads all tables and indexes of the load into the buffers.
pub fn warm(cluster: &Cluster<'_>) -> Result<()> {
    cluster.sql("SELECT pg_prewarm(oid) FROM pg_class WHERE relkind IN ('r', 'i') AND oid >= 16384")
}

/// A configuration's ledger begins as that of the tables it has a copy of.
pub fn copy_ledger(lab: &Lab, configuration: &str) -> Result<()> {
    let from = ledger(lab, None);
    if from.exists() {
        let to = ledger(lab, Some(configuration));
        fs::copy(from, &to)?;
        lab.identity.own(&to)?;
    }
    Ok(())
}

/// Where what was acknowledged is noted.
pub fn ledger(lab: &Lab, configuration: Option<&str>) -> PathBuf {
    lab.work.log(&format!("load-{}.ledger", configuration.unwrap_or("template")))
}

fn load_command(lab: &Lab, cluster: &Cluster<'_>, what: [&str; 2], ledger: &Path) -> Command {
    let mut command = lab.command(&lab.tools.load);
    command.args(what).args(["--json", "--database", "postgres", "--connect", &cluster.connection()]);
    command.arg("--ledger").arg(ledger);
    command
}

fn slob_command(lab: &Lab, slob: &Slob, cluster: &Cluster<'_>, what: &str, ledger: &Path) -> Command {
    let mut command = load_command(lab, cluster, ["slob", what], ledger);
    command.args(["--schemas", &slob.schemas.to_string(), "--threads", &slob.threads.to_string()]);
    for (name, value) in slob.parameters() {
        command.args(["--set", &format!("{name}={value}")]);
    }
    command
}

/// Runs it to its end.
pub fn run(
    lab: &Lab,
    case: &Case,
    configuration: &str,
    cluster: &Cluster<'_>,
    seconds: u64,
) -> Result<Loaded> {
    match (&case.slob, &case.tprocc) {
        (Some(slob), _) => run_slob(lab, slob, configuration, cluster, seconds),
        (None, Some(tprocc)) => run_tprocc(lab, tprocc, configuration, cluster, seconds),
        (None, None) => run_pgbench(lab, case, cluster, seconds),
    }
}

fn run_slob(
    lab: &Lab,
    slob: &Slob,
    configuration: &str,
    cluster: &Cluster<'_>,
    seconds: u64,
) -> Result<Loaded> {
    let mut command = slob_command(lab, slob, cluster, "run", &ledger(lab, Some(configuration)));
    let mode = slob.commit.to_possible_value().context("a commit mode without a name")?;
    command.args(["--commit", mode.get_name(), "--set", &format!("RUN_TIME={seconds}")]);
    let said = process::run(command, "seawall-load slob run")?;
    let outcome: Outcome = serde_json::from_slice(&said).context("what seawall-load slob run said")?;
    ensure!(outcome.is_whole(), "the load: {}", outcome.errors.join("; "));
    ensure!(outcome.operations > 0, "the load committed nothing");
    Ok(Loaded {
        commits: outcome.transactions,
        figures: vec![
            (Measure::Throughput, outcome.operations_per_second),
            (Measure::LatencyP99, outcome.latency.p99_us / 1e3),
            (Measure::Longest, outcome.latency.max_us / 1e3),
        ],
    })
}

/// The mix checks its own consistency conditions behind each run; what breaks one is an error of the run's.
fn run_tprocc(
    lab: &Lab,
    tprocc: &Tprocc,
    configuration: &str,
    cluster: &Cluster<'_>,
    seconds: u64,
) -> Result<Loaded> {
    let mut command = load_command(lab, cluster, ["tprocc", "run"], &ledger(lab, Some(configuration)));
    command.args(["--users", &tprocc.users.to_string(), "--seconds", &seconds.to_string()]);
    let said = process::run(command, "seawall-load tprocc run")?;
    let outcome: tprocc::Outcome =
        serde_json::from_slice(&said).context("what seawall-load tprocc run said")?;
    ensure!(outcome.is_whole(), "the load: {}", outcome.errors.join("; "));
    let commits: u64 = Kind::ALL.into_iter().map(|kind| outcome.kinds.of(kind).count).sum();
    ensure!(commits > 0, "the load committed nothing");
    let mut figures = vec![
        (Measure::Throughput, outcome.acknowledged_per_minute / 60.0),
        (Measure::LatencyP99, outcome.latency.p99_us / 1e3),
        (Measure::Longest, outcome.latency.max_us / 1e3),
    ];
    figures.extend(outcome.nopm.map(|nopm| (Measure::Nopm, nopm)));
    Ok(Loaded { commits, figures })
}

/// What was acknowledged is there, and whole: by the load's own invariants.
pub fn check(
    lab: &Lab,
    case: &Case,
    configuration: &str,
    cluster: &Cluster<'_>,
    loaded: &Loaded,
) -> Result<()> {
    if case.pgbench.is_some() {
        return check_work(cluster, loaded.commits);
    }
    let load = if case.slob.is_some() { "slob" } else { "tprocc" };
    let check = load_command(lab, cluster, [load, "check"], &ledger(lab, Some(configuration)));
    process::run(check, &format!("seawall-load {load} check")).map(drop)
}

/// The load's shape for so many seconds.
fn bench(case: &Case, seconds: u64) -> Result<Bench> {
    let pgbench = case.pgbench.as_ref().context("the case has no load")?;
    Ok(Bench { test: pgbench.test, clients: pgbench.clients, seconds })
}

/// pgbench, running, and where its log is.
pub struct Pgbench {
    running: Running,
    logs: PathBuf,
}

impl Pgbench {
    /// Starts it.
    pub fn start(lab: &Lab, case: &Case, cluster: &Cluster<'_>, seconds: u64) -> Result<Self> {
        let logs = lab.work.data("pgbench-logs");
        lab.fresh_dir(&logs)?;
        let mut command = bench(case, seconds)?.command(cluster);
        transactions::log_to(&mut command, &logs);
        Ok(Pgbench { running: process::start_captured(command, "pgbench", libc::SIGTERM)?, logs })
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> Result<bool> {
        self.running.has_ended()
    }

    /// Its transactions once it has ended; `lost`: because its server was killed, which it reports as an error.
    pub fn transactions(self, lost: bool) -> Result<Vec<Transaction>> {
        let ended = self.running.wait()?;
        if !lost {
            ended.success("pgbench")?;
        }
        transactions::read(&self.logs)
    }
}

fn run_pgbench(lab: &Lab, case: &Case, cluster: &Cluster<'_>, seconds: u64) -> Result<Loaded> {
    let done = Pgbench::start(lab, case, cluster, seconds)?.transactions(false)?;
    let mut took: Vec<u64> = done.iter().map(|t| t.took_us).collect();
    took.sort_unstable();
    let first = done.iter().map(|t| t.ended_us - t.took_us.min(t.ended_us)).min();
    let last = done.iter().map(|t| t.ended_us).max();
    let (Some(first), Some(last), Some(longest)) = (first, last, took.last()) else {
        anyhow::bail!("the load committed nothing");
    };
    let lasted = ((last - first) as f64 / 1e6).max(0.001);
    let p99 = took[(took.len() * 99 / 100).min(took.len() - 1)];
    Ok(Loaded {
        commits: done.len() as u64,
        figures: vec![
            (Measure::Throughput, done.len() as f64 / lasted),
            (Measure::LatencyP99, p99 as f64 / 1e3),
            (Measure::Longest, *longest as f64 / 1e3),
        ],
    })
}
