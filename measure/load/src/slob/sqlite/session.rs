//! A session of a run.

use std::collections::HashMap;

use anyhow::anyhow;
use rusqlite::{Connection, params_from_iter};

use super::names::{WAITS, index_name, table_name};
use crate::failure::Failure;
use crate::slob::pick::Rows;
use crate::slob::store::{Session, Table};
use crate::slob::{CommitMode, RedoStress};
use crate::sqlite::JournalMode;
use crate::target::SqliteFile;

pub struct SqliteSession {
    db: Connection,
    stress: RedoStress,
    updates: HashMap<u32, String>,
}

impl SqliteSession {
    pub fn new(
        db: Connection,
        mode: CommitMode,
        stress: RedoStress,
        file: &SqliteFile,
    ) -> Result<Self, Failure> {
        if mode == CommitMode::Asynchronous {
            if file.journal != JournalMode::Wal {
                return Err(Failure::Other(anyhow!(
                    "SQLite has asynchronous commits only in journal mode WAL (synchronous=NORMAL)"
                )));
            }
            db.pragma_update(None, "synchronous", "NORMAL")?;
        }
        db.set_prepared_statement_cache_capacity(64);
        Ok(SqliteSession { db, stress, updates: HashMap::new() })
    }

    fn update_statement(&mut self, schema: u32) -> String {
        let columns = self.stress.columns();
        let make = || {
            let set: String =
                columns.iter().zip(3..).map(|(c, value)| format!(", c{c} = ?{value}")).collect();
            format!("UPDATE {} SET updates = updates + 1{set} {WHERE}", indexed(schema))
        };
        self.updates.entry(schema).or_insert_with(make).clone()
    }
}

const WHERE: &str = "WHERE custid > ?1 AND custid < ?2";

/// The table, by no other way than its index.
fn indexed(schema: u32) -> String {
    format!("{} INDEXED BY {}", table_name(schema, Table::Data), index_name(schema))
}

impl Session for SqliteSession {
    fn read(&mut self, schema: u32, rows: Rows) -> Result<u64, Failure> {
        let mut read =
            self.db.prepare_cached(&format!("SELECT count(c2) FROM {} {WHERE}", indexed(schema)))?;
        let count: i64 = read.query_row([rows.above() as i64, rows.r as i64], |row| row.get(0))?;
        Ok(count as u64)
    }

    fn update(&mut self, schema: u32, rows: Rows, columns: &[String]) -> Result<u64, Failure> {
        let sql = self.update_statement(schema);
        let mut update = self.db.prepare_cached(&sql)?;
        let (above, r) = (rows.above() as i64, rows.r as i64);
        let mut values: Vec<&dyn rusqlite::ToSql> = vec![&above, &r];
        values.extend(columns.iter().map(|text| text as &dyn rusqlite::ToSql));
        Ok(update.execute(params_from_iter(values))? as u64)
    }

    fn scan(&mut self, schema: u32) -> Result<u64, Failure> {
        let sql = format!("SELECT count(c2) FROM {}", table_name(schema, Table::Scan));
        let count: i64 = self.db.prepare_cached(&sql)?.query_row([], |row| row.get(0))?;
        Ok(count as u64)
    }

    fn begin(&mut self) -> Result<(), Failure> {
        Ok(self.db.execute_batch("BEGIN")?)
    }

    fn commit(&mut self) -> Result<(), Failure> {
        Ok(self.db.execute_batch("COMMIT")?)
    }

    /// A commit that waits syncs the whole log before it.
    fn wait_durable(&mut self) -> Result<(), Failure> {
        self.db.pragma_update(None, "synchronous", "FULL")?;
        Ok(self.db.execute_batch(&format!("INSERT INTO {WAITS} VALUES (1)"))?)
    }
}
