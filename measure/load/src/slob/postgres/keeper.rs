//! Loading, looking and checking.

use std::io::{BufRead, BufReader, Write};

use anyhow::{Context, Result, bail, ensure};
use postgres::Client;

use crate::counters::Counters;
use crate::slob::stamp::{COLUMNS, Stamp};
use crate::slob::store::{HOME, Keeper, Loaded, Row, Table, schema_name, table_name};

pub struct PostgresKeeper(pub Client);

impl PostgresKeeper {
    fn number(&mut self, sql: &str) -> Result<u64> {
        Ok(self.0.query_one(sql, &[])?.try_get::<_, i64>(0)? as u64)
    }

    fn drop_all(&mut self) -> Result<()> {
        let ours = format!("^{HOME}[0-9]*$");
        let names = self.0.query("SELECT nspname::text FROM pg_namespace WHERE nspname ~ $1", &[&ours])?;
        for row in names {
            self.0.batch_execute(&format!("DROP SCHEMA {} CASCADE", row.get::<_, String>(0)))?;
        }
        Ok(())
    }
}

impl Keeper for PostgresKeeper {
    fn version(&mut self) -> Result<String> {
        crate::pg::version(&mut self.0)
    }

    fn block_bytes(&mut self) -> Result<u64> {
        let bytes: String = self.0.query_one("SHOW block_size", &[])?.get(0);
        let bytes = bytes.parse()?;
        ensure!(bytes >= 8192, "a row of SLOB's and its versions do not fit into a block of {bytes} bytes");
        Ok(bytes)
    }

    fn create(&mut self, schemas: u32) -> Result<()> {
        self.drop_all().context("cannot remove the tables of an earlier setup")?;
        self.0.batch_execute(&format!(
            "CREATE SCHEMA {HOME}; CREATE TABLE {HOME}.waits (n bigserial);
             CREATE TABLE {HOME}.loaded (setup bigint, schemas bigint, row_count bigint, scan_rows bigint)"
        ))?;
        let columns: String = (2..2 + COLUMNS).map(|c| format!(", c{c} text NOT NULL")).collect();
        let plain: Vec<String> = (2..2 + COLUMNS).map(|c| format!("ALTER c{c} SET STORAGE PLAIN")).collect();
        for schema in 1..=schemas {
            self.0.batch_execute(&format!("CREATE SCHEMA {}", schema_name(schema)))?;
            for table in [Table::Data, Table::Scan].map(|table| table_name(schema, table)) {
                self.0.batch_execute(&format!(
                    "CREATE TABLE {table} (custid bigint NOT NULL, updates bigint NOT NULL{columns})
                     WITH (fillfactor = 10); ALTER TABLE {table} {}",
                    plain.join(", ")
                ))?;
            }
        }
        Ok(())
    }

    fn load(&mut self, schema: u32, table: Table, custids: &mut dyn Iterator<Item = u64>) -> Result<()> {
        let mut copy = self.0.copy_in(&format!("COPY {} FROM STDIN", table_name(schema, table)))?;
        for custid in custids {
            let texts = Stamp::loaded(custid).columns().join("\t");
            writeln!(copy, "{custid}\t0\t{texts}")?;
        }
        copy.finish().context("cannot load rows")?;
        Ok(())
    }

    fn finish(&mut self, schema: u32) -> Result<()> {
        let (data, scan) = (table_name(schema, Table::Data), table_name(schema, Table::Scan));
        self.0.batch_execute(&format!("ALTER TABLE {data} ADD PRIMARY KEY (custid)"))?;
        // Hint bits and statistics now, not in the middle of the first run.
        for table in [data, scan] {
            self.0.batch_execute(&format!("VACUUM ANALYZE {table}"))?;
        }
        Ok(())
    }

    fn note_loaded(&mut self, loaded: &Loaded) -> Result<()> {
        let Loaded { setup, schemas, rows, scan_rows } = *loaded;
        self.0.execute(
            &format!("INSERT INTO {HOME}.loaded VALUES ($1, $2, $3, $4)"),
            &[&(setup as i64), &i64::from(schemas), &(rows as i64), &(scan_rows as i64)],
        )?;
        crate::pg::checkpoint(&mut self.0)
    }

    fn loaded(&mut self) -> Result<Option<Loaded>> {
        Ok(crate::pg::noted(&mut self.0, &format!("{HOME}.loaded"))?.map(Loaded::from))
    }

    fn counters(&mut self) -> Result<Counters> {
        crate::pg::counters(&mut self.0)
    }

    fn each_row(&mut self, schema: u32, table: Table, see: &mut dyn FnMut(&Row<'_>)) -> Result<()> {
        let copy = self.0.copy_out(&format!("COPY {} TO STDOUT", table_name(schema, table)))?;
        for line in BufReader::with_capacity(1 << 16, copy).lines() {
            let line = line.context("cannot read rows")?;
            let mut fields = line.split('\t');
            let (Some(custid), Some(updates)) = (fields.next(), fields.next()) else {
                bail!("a row has no columns")
            };
            let columns: Vec<&str> = fields.collect();
            let columns = columns.try_into().ok().context("a row has the wrong number of columns")?;
            see(&Row { custid: custid.parse()?, updates: updates.parse()?, columns });
        }
        Ok(())
    }

    fn indexed_rows(&mut self, schema: u32) -> Result<u64> {
        self.0.batch_execute("SET enable_seqscan = off; SET enable_bitmapscan = off")?;
        let counted = self
            .number(&format!("SELECT count(c2) FROM {} WHERE custid > 0", table_name(schema, Table::Data)))?;
        self.0.batch_execute("RESET enable_seqscan; RESET enable_bitmapscan")?;
        Ok(counted)
    }

    fn blocks(&mut self, schema: u32) -> Result<Option<u64>> {
        let data = table_name(schema, Table::Data);
        Ok(Some(self.number(&format!("SELECT count(DISTINCT (ctid::text::point)[0]) FROM {data}"))?))
    }

    fn integrity(&mut self, _schemas: u32) -> Result<Vec<String>> {
        crate::pg::integrity(&mut self.0)
    }
}
