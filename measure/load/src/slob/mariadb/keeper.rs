//! Loading, looking and checking.

use anyhow::{Context, Result, ensure};

use crate::counters::Counters;
use crate::mariadb::{Connection, Values, told};
use crate::slob::stamp::{COLUMN_LEN, COLUMNS, Stamp};
use crate::slob::store::{HOME, Keeper, Loaded, Row, Table, schema_name, table_name};

/// Rows in one statement: some 300 KB of text, below every sensible max_allowed_packet.
const ROWS_A_STATEMENT: usize = 64;

pub struct MariadbKeeper(pub Connection);

impl MariadbKeeper {
    fn execute(&mut self, sql: &str) -> Result<u64> {
        self.0.execute(sql).map_err(told)
    }

    fn number(&mut self, sql: &str) -> Result<u64> {
        self.0.number(sql).map(|number| number as u64).map_err(told)
    }
}

/// Bytes of a row's last column: with it, and the row beside it, a page is full.
fn filler_bytes(page_bytes: u64) -> u64 {
    let columns = (COLUMNS * COLUMN_LEN) as u64;
    // Two rows of at most half a page; some hundred bytes are heads, directories and lengths.
    page_bytes / 2 - columns - 400
}

impl Keeper for MariadbKeeper {
    fn version(&mut self) -> Result<String> {
        self.0.version()
    }

    fn block_bytes(&mut self) -> Result<u64> {
        let bytes = self.number("SELECT @@innodb_page_size")?;
        ensure!((8192..=65536).contains(&bytes), "SLOB's rows do not fit into pages of {bytes} bytes");
        Ok(bytes)
    }

    fn create(&mut self, schemas: u32) -> Result<()> {
        let ours = self.0.texts("SELECT schema_name FROM information_schema.schemata")?;
        for name in ours.iter().filter(|name| {
            name.strip_prefix(HOME).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
        }) {
            self.execute(&format!("DROP DATABASE {name}"))?;
        }
        self.execute(&format!(
            "CREATE DATABASE {HOME}; CREATE TABLE {HOME}.loaded (setup BIGINT UNSIGNED, schema_count BIGINT,
             row_count BIGINT, scan_rows BIGINT) ENGINE=InnoDB"
        ))?;
        let columns: String =
            (2..2 + COLUMNS).map(|c| format!(", c{c} VARCHAR({COLUMN_LEN}) NOT NULL DEFAULT ''")).collect();
        for schema in 1..=schemas {
            self.execute(&format!("CREATE DATABASE {}", schema_name(schema)))?;
            for table in [Table::Data, Table::Scan].map(|table| table_name(schema, table)) {
                self.execute(&format!(
                    "CREATE TABLE {table} (place BIGINT PRIMARY KEY AUTO_INCREMENT, custid BIGINT,
                     updates BIGINT{columns}, filler BLOB)
                     ENGINE=InnoDB ROW_FORMAT=DYNAMIC CHARACTER SET latin1 STATS_PERSISTENT=1 STATS_AUTO_RECALC=0"
                ))?;
            }
        }
        Ok(())
    }

    fn load(&mut self, schema: u32, table: Table, custids: &mut dyn Iterator<Item = u64>) -> Result<()> {
        let filler = filler_bytes(self.block_bytes()?);
        let beside = filler + (COLUMNS * COLUMN_LEN) as u64;
        let names: String = (2..2 + COLUMNS).map(|c| format!(", c{c}")).collect();
        let into =
            format!("INSERT INTO {} (custid, updates{names}, filler) VALUES ", table_name(schema, table));
        let empty = ", ''".repeat(COLUMNS);
        self.execute("BEGIN")?;
        loop {
            let rows: Vec<String> = custids
                .take(ROWS_A_STATEMENT)
                .map(|custid| {
                    let texts: String =
                        Stamp::loaded(custid).columns().iter().map(|text| format!(", '{text}'")).collect();
                    format!(
                        "({custid}, 0{texts}, repeat('f', {filler})), (NULL, NULL{empty}, repeat('b', {beside}))"
                    )
                })
                .collect();
            if rows.is_empty() {
                break;
            }
            self.execute(&format!("{into}{}", rows.join(", "))).context("cannot load rows")?;
        }
        self.execute("COMMIT").map(drop)
    }

    fn finish(&mut self, schema: u32) -> Result<()> {
        let (data, scan) = (table_name(schema, Table::Data), table_name(schema, Table::Scan));
        self.execute(&format!("ALTER TABLE {data} ADD UNIQUE INDEX custid (custid)"))?;
        self.0.texts(&format!("ANALYZE TABLE {data}, {scan}")).map(drop)
    }

    fn note_loaded(&mut self, loaded: &Loaded) -> Result<()> {
        let Loaded { setup, schemas, rows, scan_rows } = loaded;
        self.execute(&format!("INSERT INTO {HOME}.loaded VALUES ({setup}, {schemas}, {rows}, {scan_rows})"))
            .map(drop)
    }

    fn loaded(&mut self) -> Result<Option<Loaded>> {
        Ok(self.0.noted(HOME)?.map(Loaded::from))
    }

    fn counters(&mut self) -> Result<Counters> {
        self.0.counters()
    }

    fn each_row(&mut self, schema: u32, table: Table, see: &mut dyn FnMut(&Row<'_>)) -> Result<()> {
        let names: String = (2..2 + COLUMNS).map(|c| format!(", c{c}")).collect();
        let sql = format!(
            "SELECT custid, updates{names} FROM {} FORCE INDEX (PRIMARY) WHERE custid IS NOT NULL",
            table_name(schema, table)
        );
        let mut show = |values: &Values<'_>| {
            let number = |column: usize| -> Result<u64> {
                Ok(values.get(column).copied().flatten().context("a column is NULL")?.parse()?)
            };
            let columns = std::array::from_fn(|c| values.get(c + 2).copied().flatten().unwrap_or_default());
            see(&Row { custid: number(0)?, updates: number(1)?, columns });
            Ok(())
        };
        self.0.each(&sql, &mut show).map(drop).map_err(told)
    }

    fn indexed_rows(&mut self, schema: u32) -> Result<u64> {
        let data = table_name(schema, Table::Data);
        self.number(&format!("SELECT count(c2) FROM {data} FORCE INDEX (custid) WHERE custid > 0"))
    }

    /// As the statistics have it, which the load made exact enough: of leaf pages all were counted.
    fn blocks(&mut self, schema: u32) -> Result<Option<u64>> {
        let said = self.0.texts(&format!(
            "SELECT stat_value FROM mysql.innodb_index_stats WHERE database_name = '{}' AND table_name = 'data'
             AND index_name = 'PRIMARY' AND stat_name = 'n_leaf_pages'",
            schema_name(schema)
        ))?;
        Ok(said.first().and_then(|pages| pages.parse().ok()))
    }

    fn integrity(&mut self, schemas: u32) -> Result<Vec<String>> {
        let both = |schema| [Table::Data, Table::Scan].map(|table| table_name(schema, table));
        self.0.check_tables((1..=schemas).flat_map(both))
    }
}
