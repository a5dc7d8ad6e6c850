//! Loading, looking and checking.

use anyhow::{Context, Result, ensure};
use rusqlite::Connection;

use super::names::{LOADED, WAITS, index_name, table_name};
use crate::counters::Counters;
use crate::slob::stamp::{COLUMNS, Stamp};
use crate::slob::store::{Keeper, Loaded, Row, Table};

pub struct SqliteKeeper(pub Connection);

impl SqliteKeeper {
    fn number(&self, sql: &str) -> rusqlite::Result<u64> {
        self.0.query_row(sql, [], |row| row.get::<_, i64>(0)).map(|number| number as u64)
    }

    fn drop_all(&self) -> Result<()> {
        let mut names = self.0.prepare(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'seawall_slob[0-9_]*'",
        )?;
        let names: Vec<String> = names.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        names.iter().try_for_each(|name| self.0.execute_batch(&format!("DROP TABLE {name}")))?;
        Ok(())
    }
}

/// What a row needs beside its columns to be alone in its page.
fn filler_bytes(page_bytes: u64) -> u64 {
    if page_bytes > 4096 { page_bytes / 2 } else { 0 }
}

impl Keeper for SqliteKeeper {
    fn version(&mut self) -> Result<String> {
        Ok(format!("SQLite {}", rusqlite::version()))
    }

    fn block_bytes(&mut self) -> Result<u64> {
        let bytes = self.number("PRAGMA page_size")?;
        ensure!(bytes >= 4096, "a row of SLOB's does not fit into a page of {bytes} bytes");
        Ok(bytes)
    }

    fn create(&mut self, schemas: u32) -> Result<()> {
        self.drop_all().context("cannot remove the tables of an earlier setup")?;
        self.0.execute_batch(&format!(
            "CREATE TABLE {WAITS} (n INTEGER);
             CREATE TABLE {LOADED} (setup INTEGER, schemas INTEGER, row_count INTEGER, scan_rows INTEGER)"
        ))?;
        let columns: String = (2..2 + COLUMNS).map(|c| format!(", c{c} TEXT NOT NULL")).collect();
        for schema in 1..=schemas {
            for table in [Table::Data, Table::Scan].map(|table| table_name(schema, table)) {
                self.0.execute_batch(&format!(
                    "CREATE TABLE {table} (custid INTEGER NOT NULL, updates INTEGER NOT NULL{columns}, filler BLOB)"
                ))?;
            }
        }
        Ok(())
    }

    fn load(&mut self, schema: u32, table: Table, custids: &mut dyn Iterator<Item = u64>) -> Result<()> {
        let filler = filler_bytes(self.block_bytes()?);
        // Durable at the end, as a whole.
        self.0.pragma_update(None, "synchronous", "OFF")?;
        let transaction = self.0.transaction()?;
        let values: String = (2..2 + COLUMNS).map(|c| format!(", ?{c}")).collect();
        let sql =
            format!("INSERT INTO {} VALUES (?1, 0{values}, zeroblob({filler}))", table_name(schema, table));
        {
            let mut insert = transaction.prepare(&sql)?;
            for custid in custids {
                insert.raw_bind_parameter(1, custid as i64)?;
                for (text, column) in Stamp::loaded(custid).columns().iter().zip(2..) {
                    insert.raw_bind_parameter(column, text)?;
                }
                insert.raw_execute()?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn finish(&mut self, schema: u32) -> Result<()> {
        let (index, table) = (index_name(schema), table_name(schema, Table::Data));
        Ok(self
            .0
            .execute_batch(&format!("CREATE UNIQUE INDEX {index} ON {table} (custid); ANALYZE {table}"))?)
    }

    fn note_loaded(&mut self, loaded: &Loaded) -> Result<()> {
        let Loaded { setup, schemas, rows, scan_rows } = *loaded;
        self.0.pragma_update(None, "synchronous", "FULL")?;
        self.0.execute(
            &format!("INSERT INTO {LOADED} VALUES (?1, ?2, ?3, ?4)"),
            (setup as i64, schemas, rows as i64, scan_rows as i64),
        )?;
        // In WAL mode the load moves to the database and is synced there; otherwise this does nothing.
        self.0.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        let path = self.0.path().context("the database has no file")?;
        std::fs::File::open(path)?.sync_all().context("cannot sync the database")
    }

    fn loaded(&mut self) -> Result<Option<Loaded>> {
        if !self.0.table_exists(None, LOADED)? {
            return Ok(None);
        }
        let mut query = self.0.prepare(&format!("SELECT * FROM {LOADED}"))?;
        let mut rows = query.query([])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let mut numbers = [0; 4];
        for (column, number) in numbers.iter_mut().enumerate() {
            *number = row.get::<_, i64>(column)? as u64;
        }
        Ok(Some(Loaded::from(numbers)))
    }

    /// SQLite counts nothing over all its connections.
    fn counters(&mut self) -> Result<Counters> {
        Ok(Counters::default())
    }

    fn each_row(&mut self, schema: u32, table: Table, see: &mut dyn FnMut(&Row<'_>)) -> Result<()> {
        let mut query =
            self.0.prepare(&format!("SELECT * FROM {} NOT INDEXED", table_name(schema, table)))?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next().context("cannot read rows")? {
            let mut columns = [""; COLUMNS];
            for (number, text) in columns.iter_mut().enumerate() {
                // Damage may have made something else of a text.
                *text = row.get_ref(number + 2)?.as_str().unwrap_or_default();
            }
            let number = |column| row.get::<_, i64>(column).map(|number| number as u64);
            see(&Row { custid: number(0)?, updates: number(1)?, columns });
        }
        Ok(())
    }

    fn indexed_rows(&mut self, schema: u32) -> Result<u64> {
        let (table, index) = (table_name(schema, Table::Data), index_name(schema));
        Ok(self.number(&format!("SELECT count(c2) FROM {table} INDEXED BY {index} WHERE custid > 0"))?)
    }

    fn blocks(&mut self, schema: u32) -> Result<Option<u64>> {
        let table = table_name(schema, Table::Data);
        // Not every build of SQLite has this table.
        Ok(self
            .number(&format!("SELECT count(*) FROM dbstat WHERE name = '{table}' AND pagetype = 'leaf'"))
            .ok())
    }

    fn integrity(&mut self, _schemas: u32) -> Result<Vec<String>> {
        crate::sqlite::integrity(&self.0)
    }
}
