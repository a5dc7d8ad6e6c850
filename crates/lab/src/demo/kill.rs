//! Kill -9 at full load, restart under Seawall, and compare with the ledger.
//!
//! Three kills: every process of PostgreSQL; PostgreSQL together with Seawall's own daemon (so that
//! nobody had a chance to tidy up; a bare start must then be refused); and the SQLite program.
//! What this does *not* show is a power cut: the medium's label says what it survives.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use seawall_load::ledger::{self, Verdict};
use seawall_load::pg::Report as LedgerReport;
use seawall_load::sqlite::Journal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::compare::Clusters;
use crate::lab::Lab;
use crate::pg::{Bench, Cluster, Test, try_bare_start};
use crate::process::{self, Ended, start_captured};
use crate::side::{self, Preset, Side};
use crate::sqlite as sqlite_load;
use crate::table::thousands;

const LOAD_TIME: Duration = Duration::from_secs(4);
const LOAD_LIMIT: Duration = Duration::from_secs(60);
const LEDGER_CLIENTS: &str = "4";
const PGBENCH_CLIENTS: usize = 8;

/// One kill and what was found after it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KillReport {
    /// What was killed.
    pub what: String,
    /// How many processes got SIGKILL.
    pub processes: usize,
    /// From the start command to accepting connections again (PostgreSQL's own crash recovery included).
    pub restart_seconds: Option<f64>,
    /// Ledger against database.
    pub verdict: Verdict,
    /// What a start without Seawall said, where one was tried.
    pub bare_start: Option<BareStart>,
}

/// The outcome of starting the bare database on data whose newest writes are only in the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum BareStart {
    /// It refused, with these words.
    Refused(String),
    /// It started: silent loss would be possible.
    Started,
}

/// PostgreSQL, twice: alone, then together with Seawall's daemon.
pub fn postgres(lab: &Lab, bin: &Path, clusters: &Clusters) -> Result<Vec<KillReport>> {
    let data = clusters.data(Side::Seawall);
    [false, true].into_iter().map(|daemon_too| postgres_once(lab, bin, data, daemon_too)).collect()
}

fn postgres_once(lab: &Lab, bin: &Path, data: &Path, daemon_too: bool) -> Result<KillReport> {
    let what = if daemon_too { "PostgreSQL and Seawall's daemon" } else { "PostgreSQL" };
    lab.progress.doing(&format!("kill -9 of {what} at full load"));
    let ledger = lab.work.log(if daemon_too { "ledger-pg-2" } else { "ledger-pg-1" });
    let cluster = Cluster::start(lab, bin, Side::Seawall, data)?;
    cluster.sql("DROP TABLE IF EXISTS seawall_ledger")?;
    let load = Bench { test: Test::TpcB, clients: PGBENCH_CLIENTS, seconds: LOAD_LIMIT.as_secs() };
    let pgbench = start_captured(load.command(&cluster), "pgbench", libc::SIGTERM)?;
    let mut commits = lab.command(&lab.tools.load);
    commits.args(["ledger-pg", "--clients", LEDGER_CLIENTS, "--seconds", &LOAD_LIMIT.as_secs().to_string()]);
    commits.arg("--connect").arg(cluster.connection()).arg("--ledger").arg(&ledger);
    let commits = start_captured(commits, "the ledger load", libc::SIGTERM)?;
    process::pause(LOAD_TIME)?;

    let processes = if daemon_too {
        let daemon =
            lab.pool.daemon().context("Seawall's daemon is not running, although its database is")?;
        cluster.kill_with(&[daemon])?
    } else {
        cluster.kill()?
    };
    let ended = commits.wait_for(LOAD_LIMIT)?.success("the ledger load")?;
    let seen: LedgerReport = serde_json::from_slice(&ended)?;
    ensure!(seen.acknowledged > 0, "nothing was committed before the kill: {:?}", seen.disconnects);
    pgbench.wait_for(LOAD_LIMIT)?; // lost its connections: fails, as it should

    let bare_start = if daemon_too { Some(bare_start(lab, bin, data)?) } else { None };
    let started = Instant::now();
    let cluster = Cluster::start(lab, bin, Side::Seawall, data).context("restart after the kill")?;
    let restart_seconds = started.elapsed().as_secs_f64();
    let mut check = lab.command(&lab.tools.load);
    check.arg("check-pg").arg("--connect").arg(cluster.connection()).arg("--ledger").arg(&ledger);
    let verdict = verdict(start_captured(check, "the PostgreSQL check", libc::SIGTERM)?.wait()?)?;
    cluster.stop()?;
    lab.settle()?;
    finish(
        lab,
        KillReport {
            what: what.to_owned(),
            processes,
            restart_seconds: Some(restart_seconds),
            verdict,
            bare_start,
        },
    )
}

fn bare_start(lab: &Lab, bin: &Path, data: &Path) -> Result<BareStart> {
    Ok(match try_bare_start(lab, bin, data)? {
        Some(words) => BareStart::Refused(words),
        None => BareStart::Started,
    })
}

/// The SQLite program.
pub fn sqlite(lab: &Lab) -> Result<KillReport> {
    let what = "the SQLite program";
    lab.progress.doing(&format!("kill -9 of {what} at full load"));
    sqlite_load::create(lab, Side::Seawall, Journal::Wal)?; // empty, so that the ledger is complete
    let ledger = lab.work.log("ledger-sqlite");
    let shape = sqlite_load::Shape { journal: Journal::Wal, seconds: LOAD_LIMIT.as_secs_f64() };
    let command = sqlite_load::load(lab, Side::Seawall, shape, Some(&ledger))?;
    let load = start_captured(command, what, libc::SIGTERM)?;
    process::pause(LOAD_TIME / 2)?;

    let mut below = process::descendants(load.pid());
    below.push(load.pid()); // a launcher may become its command
    let program = lab.tools.load.to_string_lossy().into_owned();
    below.retain(|&pid| process::command_line(pid).starts_with(&program));
    ensure!(!below.is_empty(), "the SQLite load ended before it was killed");
    below.iter().for_each(|&pid| process::signal(pid, libc::SIGKILL));
    load.wait_for(LOAD_LIMIT)?;
    ensure!(!ledger::read(&ledger)?.is_empty(), "nothing was committed before the kill");

    let dir = lab.work.data("sqlite-seawall-wal");
    let args = ["check-sqlite".into(), "--db".into(), dir.join("bank.db"), "--ledger".into(), ledger];
    let check = side::command(lab, Side::Seawall, Preset::Sqlite, &dir, &lab.tools.load, args)?;
    let verdict = verdict(start_captured(check, "the SQLite check", libc::SIGTERM)?.wait()?)?;
    finish(
        lab,
        KillReport {
            what: what.to_owned(),
            processes: below.len(),
            restart_seconds: None,
            verdict,
            bare_start: None,
        },
    )
}

fn finish(lab: &Lab, report: KillReport) -> Result<KillReport> {
    let v = &report.verdict;
    let found = thousands(v.acknowledged as f64);
    lab.progress.done(&format!("kill -9 of {}: {found} acknowledged, {} missing", report.what, v.missing));
    Ok(report)
}

/// Exit code 1 is a verdict too (a bad one); anything else is a check that could not run.
fn verdict<T: DeserializeOwned>(ended: Ended) -> Result<T> {
    ensure!(matches!(ended.status.code(), Some(0 | 1)), "the check could not run: {}", ended.stderr.trim());
    serde_json::from_slice(&ended.stdout).with_context(|| format!("the check said: {}", ended.stderr.trim()))
}
