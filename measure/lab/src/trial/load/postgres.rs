//! PostgreSQL's loads: pgbench, and our own generators, which are programs as well.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use seawall_load::slob::Outcome;
use seawall_load::tprocc;
use seawall_load::tprocc::input::Kind;

use super::{Loaded, ledger};
use crate::case::{Case, Load, Measure, Slob, Tprocc};
use crate::lab::Lab;
use crate::pg::transactions::{self, Transaction};
use crate::pg::{Bench, Cluster, check_work};
use crate::process::{self, Running};
use crate::trial::prepare::Prepared;
use crate::trial::stage::Stage;

/// Makes the load's tables on a running server.
pub fn create(lab: &Lab, case: &Case, cluster: &Cluster<'_>) -> Result<()> {
    match case.load() {
        Load::Slob(slob) => {
            let setup = slob_command(lab, slob, cluster, "setup", &ledger(lab, None));
            process::run(setup, "seawall-load slob setup")?;
        }
        Load::Tprocc(Tprocc { warehouses, items, customers, .. }) => {
            let mut setup = load_command(lab, cluster, ["tprocc", "setup"], &ledger(lab, None));
            for (name, value) in
                [("--warehouses", warehouses), ("--items", items), ("--customers", customers)]
            {
                setup.arg(name).arg(value.to_string());
            }
            process::run(setup, "seawall-load tprocc setup")?;
        }
        Load::Pgbench(pgbench) => {
            let mut init = cluster.client("pgbench");
            init.args(["-i", "-q", "-s", &pgbench.scale.to_string()]);
            process::run(init, "pgbench -i")?;
        }
        Load::Definitions(_) => {}
        _ => bail!("the load does not run on PostgreSQL"),
    }
    // Every turn begins with a new server: with its tables in its buffers, not with reads.
    cluster.sql("CREATE EXTENSION pg_prewarm")
}

/// Reads all tables and indexes of the load into the buffers, and writes what is dirty.
pub fn warm(cluster: &Cluster<'_>) -> Result<()> {
    cluster.sql("SELECT pg_prewarm(oid) FROM pg_class WHERE relkind IN ('r', 'i') AND oid >= 16384")?;
    cluster.sql("CHECKPOINT")
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
pub fn run(stage: &Stage<'_>, prepared: &Prepared, cluster: &Cluster<'_>) -> Result<Loaded> {
    let (lab, seconds) = (stage.lab, stage.run.seconds);
    let name = &prepared.configuration.name;
    match stage.case.load() {
        Load::Slob(slob) => run_slob(lab, slob, name, cluster, seconds),
        Load::Tprocc(tprocc) => run_tprocc(lab, tprocc, name, cluster, seconds),
        _ => Loaded::of(&Pgbench::start(lab, stage.case, cluster, seconds)?.transactions(false)?),
    }
}

/// What was acknowledged is there, and whole: by the load's own invariants.
pub fn check(stage: &Stage<'_>, prepared: &Prepared, cluster: &Cluster<'_>, loaded: &Loaded) -> Result<()> {
    let load = match stage.case.load() {
        Load::Slob(_) => "slob",
        Load::Tprocc(_) => "tprocc",
        Load::Pgbench(pgbench) => {
            let changed = if pgbench.test.updates() { loaded.commits } else { 0 };
            return check_work(cluster, changed);
        }
        _ => bail!("the load does not run on PostgreSQL"),
    };
    let ledger = ledger(stage.lab, Some(&prepared.configuration.name));
    let check = load_command(stage.lab, cluster, [load, "check"], &ledger);
    process::run(check, &format!("seawall-load {load} check")).map(drop)
}

/// The command that runs SLOB for so long.
pub fn slob_run(
    lab: &Lab,
    slob: &Slob,
    configuration: &str,
    cluster: &Cluster<'_>,
    seconds: u64,
) -> Result<Command> {
    let mut command = slob_command(lab, slob, cluster, "run", &ledger(lab, Some(configuration)));
    let mode = slob.commit.to_possible_value().context("the commit mode has no name")?;
    command.args(["--commit", mode.get_name(), "--set", &format!("RUN_TIME={seconds}")]);
    Ok(command)
}

/// What it said.
pub fn slob_outcome(said: &[u8]) -> Result<Outcome> {
    serde_json::from_slice(said).context("cannot read the report of seawall-load slob run")
}

fn run_slob(
    lab: &Lab,
    slob: &Slob,
    configuration: &str,
    cluster: &Cluster<'_>,
    seconds: u64,
) -> Result<Loaded> {
    let command = slob_run(lab, slob, configuration, cluster, seconds)?;
    let outcome = slob_outcome(&process::run(command, "seawall-load slob run")?)?;
    ensure!(outcome.is_whole(), "the load was cut short: {}", outcome.errors.join("; "));
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
        serde_json::from_slice(&said).context("cannot read the report of seawall-load tprocc run")?;
    ensure!(outcome.is_whole(), "the load was cut short: {}", outcome.errors.join("; "));
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

/// The load's shape for so many seconds.
fn bench(case: &Case, seconds: u64) -> Result<Bench> {
    let Load::Pgbench(pgbench) = case.load() else { bail!("the case's load is not pgbench") };
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
        // One that is over may not have been read yet.
        let names = (0..).map(|n| lab.work.data(&format!("pgbench-logs-{n}")));
        let logs =
            names.into_iter().find(|dir| !dir.exists()).context("no name is free for pgbench's logs")?;
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
        let all = transactions::read(&self.logs)?;
        std::fs::remove_dir_all(&self.logs)?;
        Ok(all)
    }
}
