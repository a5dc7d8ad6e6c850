//! The tables of the SQLite load.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rusqlite::Connection;

use super::options::{JournalMode, Options, Synchronous};
use crate::block::mix;

const TABLES: &str = "
    CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, filler TEXT NOT NULL);
    CREATE TABLE history (
        client INTEGER NOT NULL, seq INTEGER NOT NULL, account INTEGER NOT NULL,
        delta INTEGER NOT NULL, filler TEXT NOT NULL, PRIMARY KEY (client, seq));";

/// Opens the database with the run's settings and creates the tables when they are missing.
pub fn open(options: &Options) -> Result<Connection> {
    let limit = Duration::from_secs(10);
    let mut db = connect(&options.db, options.journal, options.synchronous, limit)?;
    if !db.table_exists(None, "history")? {
        create(&mut db, options.rows).context("cannot create the tables")?;
    }
    Ok(db)
}

/// Opens a database, which is made when it is not there. Others' locks are waited for so long.
pub(crate) fn connect(
    path: &Path,
    journal: JournalMode,
    synchronous: Synchronous,
    limit: Duration,
) -> Result<Connection> {
    let db = Connection::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    db.busy_timeout(limit)?;
    let asked = journal.pragma();
    let mode: String = db.pragma_update_and_check(None, "journal_mode", asked, |row| row.get(0))?;
    ensure!(
        mode == asked,
        "journal mode is {mode}, not {asked} as asked: {} does not allow it",
        path.display()
    );
    db.pragma_update(None, "synchronous", synchronous.pragma())?;
    Ok(db)
}

fn create(db: &mut Connection, rows: u32) -> Result<()> {
    let transaction = db.transaction()?;
    transaction.execute_batch(TABLES)?;
    {
        let mut insert = transaction.prepare("INSERT INTO accounts VALUES (?1, 0, ?2)")?;
        for id in 0..rows {
            insert.execute((id, filler(u64::from(id))))?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// 80 characters that do not compress to nothing.
pub fn filler(seed: u64) -> String {
    (0..5).map(|i| format!("{:016x}", mix(seed.wrapping_mul(5).wrapping_add(i)))).collect()
}
