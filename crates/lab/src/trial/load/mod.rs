//! The load of a case, on a running database.
//!
//! [`postgres`]: pgbench and our own generators. [`installed`]: tools of others, on other databases.

mod installed;
mod postgres;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

pub use postgres::Pgbench;

use super::prepare::Prepared;
use super::server::Server;
use super::turn::Stage;
use crate::case::{Case, Load, Measure};
use crate::lab::Lab;
use crate::pg::Template;
use crate::pg::transactions::Transaction;
use crate::{mariadb, redis, tools};

/// What a load did.
pub struct Loaded {
    pub commits: u64,
    /// Measures that it knows itself.
    pub figures: Vec<(Measure, f64)>,
}

/// The database's program (PostgreSQL: where its programs are), after whatever the load needs was found.
pub fn find_programs(load: Load<'_>) -> Result<PathBuf> {
    let tool = load.tool().map(|tool| tool.find()).transpose()?;
    match load {
        Load::Pgbench(_) | Load::Slob(_) | Load::Tprocc(_) => tools::postgres_bin(),
        Load::Sysbench(_) => mariadb::program(),
        Load::RedisBenchmark(_) => redis::program(),
        Load::DbBench(_) => tool.ok_or_else(|| anyhow::anyhow!("RocksDB without its tool")),
    }
}

/// What every configuration begins with a copy of.
pub fn template<'a>(lab: &'a Lab, bin: &Path, case: &Case) -> Result<Template<'a>> {
    match case.load() {
        Load::Pgbench(_) | Load::Slob(_) | Load::Tprocc(_) => {
            Template::create_with(lab, bin, |cluster| postgres::create(lab, case, cluster))
        }
        load => installed::template(lab, load),
    }
}

/// Warm buffers, and nothing that a checkpoint would write.
pub fn warm(case: &Case, server: &Server<'_>) -> Result<()> {
    match case.load() {
        Load::Pgbench(_) | Load::Slob(_) | Load::Tprocc(_) => postgres::warm(server.postgres()?),
        load => installed::warm(load, server),
    }
}

/// Runs it to its end.
pub fn run(stage: &Stage<'_>, prepared: &Prepared, server: &Server<'_>) -> Result<Loaded> {
    match stage.case.load() {
        Load::Pgbench(_) | Load::Slob(_) | Load::Tprocc(_) => {
            postgres::run(stage, prepared, server.postgres()?)
        }
        load => installed::run(stage, load, prepared, server),
    }
}

/// What was acknowledged is there, and whole, as far as the load can tell.
pub fn check<'a>(
    stage: &Stage<'a>,
    prepared: &Prepared,
    server: Server<'a>,
    loaded: &Loaded,
) -> Result<Server<'a>> {
    match stage.case.load() {
        Load::Pgbench(_) | Load::Slob(_) | Load::Tprocc(_) => {
            postgres::check(stage, prepared, server.postgres()?, loaded)?;
            Ok(server)
        }
        load => installed::check(stage, load, prepared, server),
    }
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

impl Loaded {
    /// From each transaction's end and duration.
    pub fn of(done: &[Transaction]) -> Result<Self> {
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
}
