//! Killing databases at full load, and the proof afterwards. The demo and the tests share this.
//!
//! A load notes each commit in a ledger outside the database as soon as it was acknowledged. After the kill
//! and a restart, ledger and database are compared, and the database's own checkers are run. Not shown by
//! any of it: a power cut. The page cache outlives every process.

mod etcd;
mod generator;
mod mariadb;
mod postgres;
mod program;
mod redis;
mod sqlite;
mod store;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use seawall_load::ledger::{self, Verdict};

pub use etcd::check_etcd;
pub use generator::{Generator, GeneratorLoad, Reached};
pub use mariadb::{MariadbLoad, check_mariadb, check_mariadb_files};
pub use postgres::{PostgresLoad, check_postgres};
pub use program::ProgramLoad;
pub use redis::check_redis;
pub use sqlite::check_sqlite;
pub use store::check_store;

use crate::process::{self, Ended};

/// Nothing that is waited for here takes longer, however busy the machine is.
const LIMIT: Duration = Duration::from_secs(60);

/// What a check said. Exit code 1 is a verdict too (a bad one); anything else is a check that could not run.
fn verdict(ended: Ended) -> Result<Verdict> {
    ensure!(matches!(ended.status.code(), Some(0 | 1)), "the check could not run: {}", ended.stderr.trim());
    serde_json::from_slice(&ended.stdout).with_context(|| format!("the check said: {}", ended.stderr.trim()))
}

/// How many commits the ledger holds; none while it does not exist.
fn acknowledged(ledger: &Path) -> Result<usize> {
    if ledger.exists() { Ok(ledger::read(ledger)?.len()) } else { Ok(0) }
}

/// Waits until the ledger has grown by this many commits.
fn wait_for_commits(ledger: &Path, more: usize) -> Result<()> {
    let wanted = acknowledged(ledger)? + more;
    let end = Instant::now() + LIMIT;
    while acknowledged(ledger)? < wanted {
        ensure!(Instant::now() < end, "no {more} commits within {} s", LIMIT.as_secs());
        process::pause(Duration::from_millis(20))?;
    }
    Ok(())
}
