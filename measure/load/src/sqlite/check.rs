//! Compares the ledger with the SQLite database, and lets SQLite check itself.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use rusqlite::{Connection, OpenFlags};

use crate::ledger::{self, Entry, Verdict};

/// Options of `seawall-load check-sqlite`.
#[derive(Clone, Debug, Args)]
pub struct CheckOptions {
    /// The database file
    #[arg(long)]
    pub db: PathBuf,
    /// The ledger its load wrote
    #[arg(long)]
    pub ledger: PathBuf,
}

/// Every ledger line must be in the database, and the database must be sound.
pub fn check(options: &CheckOptions) -> Result<Verdict> {
    let acknowledged = ledger::read(&options.ledger)?;
    // Writable, because a WAL left by a killed process has to be recovered; never created.
    let db = Connection::open_with_flags(&options.db, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .with_context(|| format!("open {}", options.db.display()))?;
    let found = commits(&db).context("read the history table")?;
    let mut verdict = Verdict::compare(&acknowledged, &found);
    verdict.integrity_errors = integrity(&db).context("check the database")?;
    verdict.integrity_errors.extend(sums(&db).context("add up the accounts")?);
    Ok(verdict)
}

fn commits(db: &Connection) -> Result<HashSet<Entry>> {
    let mut query = db.prepare("SELECT client, seq FROM history NOT INDEXED")?;
    let rows = query.query_map([], |row| Ok(Entry { client: row.get(0)?, seq: row.get(1)? }))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// What SQLite itself finds wrong.
pub(crate) fn integrity(db: &Connection) -> Result<Vec<String>> {
    let mut query = db.prepare("PRAGMA integrity_check")?;
    let lines: Vec<String> = query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let wrong = lines.into_iter().filter(|line| line != "ok");
    Ok(wrong.map(|line| format!("integrity_check: {line}")).collect())
}

fn sums(db: &Connection) -> Result<Option<String>> {
    let sum = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0));
    let balances = sum("SELECT coalesce(sum(balance), 0) FROM accounts")?;
    let deltas = sum("SELECT coalesce(sum(delta), 0) FROM history")?;
    let differ = || format!("balances add up to {balances}, the history to {deltas}: a torn transaction");
    Ok((balances != deltas).then(differ))
}
