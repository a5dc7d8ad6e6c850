//! Kill -9 at full load, restart under Seawall, and compare with the ledger.
//!
//! Three kills: every process of PostgreSQL; PostgreSQL together with Seawall's own daemon (so that
//! nobody had a chance to tidy up; a bare start must then be refused); and the SQLite program.
//! What this does *not* show is a power cut: the medium's label says what it survives.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use seawall_load::ledger::Verdict;
use seawall_load::sqlite::JournalMode;
use serde::{Deserialize, Serialize};

use crate::compare::Clusters;
use crate::crash::{PostgresLoad, ProgramLoad, check_postgres, check_sqlite};
use crate::lab::Lab;
use crate::pg::{Cluster, try_bare_start};
use crate::process;
use crate::side::Side;
use crate::table::thousands;

const LOAD_TIME: Duration = Duration::from_secs(4);

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
    let data = clusters.data();
    [false, true].into_iter().map(|daemon_too| postgres_once(lab, bin, data, daemon_too)).collect()
}

fn postgres_once(lab: &Lab, bin: &Path, data: &Path, daemon_too: bool) -> Result<KillReport> {
    let what = if daemon_too { "PostgreSQL and Seawall's daemon" } else { "PostgreSQL" };
    lab.progress.doing(&format!("kill -9 of {what} at full load"));
    let ledger = lab.work.log(if daemon_too { "ledger-pg-2" } else { "ledger-pg-1" });
    let cluster = Cluster::start(lab, bin, Side::Seawall, data)?;
    cluster.sql("DROP TABLE IF EXISTS seawall_ledger")?;
    let load = PostgresLoad::start(lab, &cluster, &ledger)?;
    process::pause(LOAD_TIME)?;
    let processes = if daemon_too { cluster.kill_with(&[daemon(lab)?])? } else { cluster.kill()? };
    load.end()?;

    let bare_start = if daemon_too { Some(bare_start(lab, bin, data)?) } else { None };
    let started = Instant::now();
    let cluster =
        Cluster::start(lab, bin, Side::Seawall, data).context("cannot restart PostgreSQL after the kill")?;
    let restart_seconds = Some(started.elapsed().as_secs_f64());
    let verdict = check_postgres(lab, &cluster, &ledger)?;
    cluster.stop()?;
    lab.settle()?;
    finish(lab, KillReport { what: what.to_owned(), processes, restart_seconds, verdict, bare_start })
}

fn daemon(lab: &Lab) -> Result<u32> {
    lab.pool.daemon().context("Seawall's daemon is not running, although its database is")
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
    let ledger = lab.work.log("ledger-sqlite");
    let load = ProgramLoad::sqlite(lab, Side::Seawall, JournalMode::Wal, &ledger)?;
    process::pause(LOAD_TIME / 2)?;
    let processes = load.kill()?;
    let verdict =
        check_sqlite(lab, Side::Seawall, &crate::sqlite::dir(lab, Side::Seawall, JournalMode::Wal), &ledger)?;
    ensure!(verdict.acknowledged > 0, "nothing was committed before the kill");
    finish(
        lab,
        KillReport { what: what.to_owned(), processes, restart_seconds: None, verdict, bare_start: None },
    )
}

fn finish(lab: &Lab, report: KillReport) -> Result<KillReport> {
    let v = &report.verdict;
    let found = thousands(v.acknowledged as f64);
    lab.progress.done(&format!("kill -9 of {}: {found} acknowledged, {} missing", report.what, v.missing));
    Ok(report)
}
