//! The loads that a crash interrupts: pgbench, which notes each of its transactions, sysbench, which says every second how
//! many there were, and SLOB's method, which counts in windows and has a ledger.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};

use super::rates::Rates;
use crate::case::{self, Case};
use crate::installed::Tables;
use crate::mariadb::{self, DATABASE};
use crate::process::{self, Running};
use crate::trial::load::{self, Loaded, Pgbench, slob_outcome, slob_run};
use crate::trial::prepare::Prepared;
use crate::trial::server::{Database, Server};
use crate::trial::stage::Stage;

/// A load that has not made its commits by then is too slow for its case, seconds.
pub const LONGEST: u64 = 900;
/// Rates of pgbench are taken over windows of this length, µs; sysbench's are a second's.
const WINDOW: u64 = 250_000;
const SECOND: u64 = 1_000_000;

/// A load that runs.
pub enum Load {
    Pgbench(Pgbench),
    Sysbench { running: Running, from_us: u64 },
    Slob(Running),
}

/// What it did.
pub struct Ended {
    /// Commits that were acknowledged, as far as the load still could say so.
    pub commits: u64,
    pub rates: Rates,
}

/// A table for the first transaction.
pub fn make_ready(server: &Server<'_>) -> Result<()> {
    match &server.database {
        Database::Postgres(cluster) => cluster.sql("CREATE TABLE IF NOT EXISTS lab_first (at timestamptz)"),
        Database::Mariadb(server) => {
            server.sql(&format!("CREATE TABLE IF NOT EXISTS {DATABASE}.lab_first (at datetime)"))
        }
        _ => bail!("only PostgreSQL and MariaDB are crashed"),
    }
}

/// A transaction.
pub fn first(server: &Server<'_>) -> Result<()> {
    match &server.database {
        Database::Postgres(cluster) => cluster.sql("INSERT INTO lab_first VALUES (now())"),
        Database::Mariadb(server) => server.sql(&format!("INSERT INTO {DATABASE}.lab_first VALUES (now())")),
        _ => bail!("only PostgreSQL and MariaDB are crashed"),
    }
}

/// Every acknowledged commit is there: `there` were before the load, which has made so many `more`.
pub fn check<'a>(
    stage: &Stage<'a>,
    prepared: &Prepared,
    server: Server<'a>,
    there: u64,
    more: u64,
) -> Result<Server<'a>> {
    if let case::Load::Slob(_) = stage.case.load() {
        return load::check(stage, prepared, server, &Loaded { commits: more, figures: Vec::new() });
    }
    let (kept, acknowledged) = (counted(stage.case, &server)?, there + more);
    ensure!(kept >= acknowledged, "{} acknowledged commits are missing after the crash", acknowledged - kept);
    Ok(server)
}

/// Commits of the load that the database has. SLOB's have their ledger.
pub fn counted(case: &Case, server: &Server<'_>) -> Result<u64> {
    match (&server.database, case.load()) {
        (_, case::Load::Slob(_)) => Ok(0),
        (Database::Postgres(cluster), _) => {
            Ok(cluster.query("SELECT count(*) FROM pgbench_history")?.parse()?)
        }
        (Database::Mariadb(server), case::Load::Sysbench(load)) => tables(load).sum(server),
        _ => bail!("only pgbench and sysbench are crashed"),
    }
}

fn tables(load: &case::Sysbench) -> Tables {
    Tables { tables: load.tables, rows: load.rows }
}

impl Load {
    /// Starts it.
    pub fn start(stage: &Stage<'_>, prepared: &Prepared, server: &Server<'_>, seconds: u64) -> Result<Self> {
        match (stage.case.load(), &server.database) {
            (case::Load::Sysbench(load), Database::Mariadb(server)) => {
                let command = tables(load).reporting(stage.lab, server, load.threads, seconds);
                let running = process::start_captured(command, "sysbench", libc::SIGTERM)?;
                let from_us = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as u64;
                Ok(Load::Sysbench { running, from_us })
            }
            (case::Load::Slob(slob), Database::Postgres(cluster)) => {
                let name = &prepared.configuration.name;
                let command = slob_run(stage.lab, slob, name, cluster, seconds)?;
                Ok(Load::Slob(process::start_captured(command, SLOB, libc::SIGTERM)?))
            }
            _ => Ok(Load::Pgbench(Pgbench::start(stage.lab, stage.case, server.postgres()?, seconds)?)),
        }
    }

    /// Until there are so many commits.
    pub fn wait_for(&mut self, commits: u64, server: &Server<'_>) -> Result<()> {
        let count = || -> Result<u64> {
            match &server.database {
                Database::Mariadb(server) => updated(server),
                _ => Ok(server.postgres()?.query(COMMITS)?.parse()?),
            }
        };
        let from = count()?;
        let end = Instant::now() + Duration::from_secs(LONGEST);
        while count()? - from < commits {
            ensure!(!self.has_ended()?, "the load ended before the crash");
            ensure!(Instant::now() < end, "the load committed too little within {LONGEST} s");
            process::pause(Duration::from_millis(100))?;
        }
        Ok(())
    }

    fn has_ended(&mut self) -> Result<bool> {
        match self {
            Load::Pgbench(load) => load.has_ended(),
            Load::Sysbench { running, .. } | Load::Slob(running) => running.has_ended(),
        }
    }

    /// What it did, once it has ended; `lost`: because its server was killed, which it reports as an error.
    pub fn ended(self, lost: bool) -> Result<Ended> {
        match self {
            Load::Pgbench(load) => {
                let done = load.transactions(lost)?;
                Ok(Ended { commits: done.len() as u64, rates: Rates::of(&done, WINDOW) })
            }
            Load::Sysbench { running, from_us } => {
                let ended = running.wait()?;
                let said = ended.stdout().to_vec();
                if !lost {
                    ended.success("sysbench")?;
                }
                let counts = seconds(&String::from_utf8_lossy(&said));
                ensure!(!counts.is_empty(), "sysbench printed no rates");
                let commits = counts.iter().sum::<f64>().floor() as u64;
                Ok(Ended { commits, rates: Rates::new(from_us, SECOND, counts) })
            }
            Load::Slob(running) => {
                let ended = running.wait()?;
                let outcome = slob_outcome(ended.stdout());
                if !lost {
                    ended.success(SLOB)?;
                }
                let outcome = outcome?;
                let counts = outcome.windows.counts.iter().map(|count| *count as f64).collect();
                let rates = Rates::new(outcome.windows.from_us, outcome.windows.every_us, counts);
                Ok(Ended { commits: outcome.transactions, rates })
            }
        }
    }
}

const SLOB: &str = "seawall-load slob run";
/// PostgreSQL's own count lags by a second at most.
const COMMITS: &str = "SELECT sum(xact_commit)::bigint FROM pg_stat_database";

fn updated(server: &mariadb::Server<'_>) -> Result<u64> {
    // Every side has a binary log.
    let said = server.query("SHOW GLOBAL STATUS LIKE 'Binlog_commits'")?;
    said.split_whitespace()
        .last()
        .context("MariaDB does not report Binlog_commits")?
        .parse()
        .context("Binlog_commits is not a number")
}

/// Transactions of each second: `[ 2s ] thds: 4 tps: 5120.32 qps: …`.
fn seconds(said: &str) -> Vec<f64> {
    let rate = |line: &str| {
        line.starts_with('[').then(|| line.split("tps: ").nth(1)?.split(' ').next()?.parse().ok())
    };
    said.lines().filter_map(|line| rate(line)?).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysbenchs_seconds_are_understood() {
        let said = "Threads started!\n\n[ 1s ] thds: 4 tps: 5120.32 qps: 5120.32 (r/w/o: 0.00/5120.32/0.00) lat (ms,99%): 1.58\n\
                    [ 2s ] thds: 4 tps: 7.00 qps: 7.00\nFATAL: mysql_drv_query() returned error 2013\n";
        assert_eq!(seconds(said), [5120.32, 7.0]);
    }
}
