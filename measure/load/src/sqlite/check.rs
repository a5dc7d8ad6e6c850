//! Compares the ledger with the SQLite database, and lets SQLite check itself.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use rusqlite::{Connection, OpenFlags};

use crate::ledger::Entry;
use crate::ledger_load::{Checked, Found};

/// Where a database is.
#[derive(Clone, Debug, Args)]
pub struct Sqlite {
    /// The database file
    #[arg(long)]
    pub db: PathBuf,
}

impl Checked for Sqlite {
    /// The commits, what SQLite says of the database, and whether the sums agree.
    fn find(&self, _: &BTreeSet<i32>) -> Result<Found> {
        // Writable, because a WAL left by a killed process has to be recovered; never created.
        let db = Connection::open_with_flags(&self.db, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .with_context(|| format!("cannot open {}", self.db.display()))?;
        let commits = commits(&db).context("cannot read the history table")?;
        let mut errors = integrity(&db).context("cannot check the database")?;
        errors.extend(sums(&db).context("cannot add up the accounts")?);
        Ok(Found { commits, errors })
    }
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
