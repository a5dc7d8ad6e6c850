//! The loads a case file can ask for: a table each, of which a case has one.

use std::collections::BTreeMap;

use seawall_load::installed::Tool;
use seawall_load::slob::{CommitMode, Conf};
use serde::Deserialize;
use toml::Spanned;

use super::wrong::Wrong;
use super::{Product, Setting};
use crate::pg::Test;

type Checked = Result<(), Wrong>;

fn wrong(what: &str) -> Checked {
    Err(Wrong { at: 0..0, what: what.into() })
}

/// A case's load.
#[derive(Clone, Copy, Debug)]
pub enum Load<'a> {
    Pgbench(&'a Pgbench),
    Slob(&'a Slob),
    Tprocc(&'a Tprocc),
    Sysbench(&'a Sysbench),
    RedisBenchmark(&'a RedisBenchmark),
    DbBench(&'a DbBench),
}

impl Load<'_> {
    /// The tables of a case file.
    pub const TABLES: &'static str =
        "[pgbench], [slob], [tprocc], [sysbench], [redis-benchmark] or [db-bench]";

    /// What it is a load of.
    pub fn product(self) -> Product {
        match self {
            Load::Pgbench(_) | Load::Slob(_) | Load::Tprocc(_) => Product::Postgres,
            Load::Sysbench(_) => Product::Mariadb,
            Load::RedisBenchmark(_) => Product::Redis,
            Load::DbBench(_) => Product::Rocksdb,
        }
    }

    /// The program of others that makes it. (pgbench comes with PostgreSQL, and is looked for there.)
    pub fn tool(self) -> Option<Tool> {
        match self {
            Load::Pgbench(_) | Load::Slob(_) | Load::Tprocc(_) => None,
            Load::Sysbench(_) => Some(Tool::Sysbench),
            Load::RedisBenchmark(_) => Some(Tool::RedisBenchmark),
            Load::DbBench(_) => Some(Tool::DbBench),
        }
    }

    /// In words, commit mode named.
    pub fn in_words(self) -> String {
        match self {
            Load::Pgbench(load) => load.in_words(),
            Load::Slob(load) => load.in_words(),
            Load::Tprocc(load) => load.in_words(),
            Load::Sysbench(Sysbench { threads, tables, rows }) => format!(
                "sysbench oltp_update_index, {threads} threads, tables: {tables}, rows of each: {rows}; commit mode: per \
                 operation, each waits until it is durable"
            ),
            Load::RedisBenchmark(RedisBenchmark { clients, pipeline }) => format!(
                "redis-benchmark SET, {clients} clients, pipeline {pipeline}, 100 bytes each, from an empty database; commit \
                 mode: a reply comes after the log's fsync"
            ),
            Load::DbBench(DbBench { threads }) => format!(
                "db_bench fillrandom, {threads} threads, from an empty database; commit mode: each put waits until it is durable"
            ),
        }
    }

    /// What its tables take on the disk, bytes; of what begins empty: what it may write.
    pub fn table_bytes(self) -> u64 {
        match self {
            Load::Pgbench(load) => u64::from(load.scale) << 24,
            Load::Slob(load) => load.bytes().unwrap_or(0),
            Load::Tprocc(load) => load.bytes(),
            Load::Sysbench(load) => u64::from(load.tables) * u64::from(load.rows) * 400 + (64 << 20),
            Load::RedisBenchmark(_) | Load::DbBench(_) => 512 << 20,
        }
    }

    /// Whether its numbers make sense.
    pub(super) fn check(self) -> Checked {
        match self {
            Load::Pgbench(load) => load.check(),
            Load::Slob(load) => load.check(),
            Load::Tprocc(load) => load.check(),
            Load::Sysbench(Sysbench { threads, tables, rows }) => {
                match (1..=100).contains(threads)
                    && (1..=64).contains(tables)
                    && (100..=10_000_000).contains(rows)
                {
                    true => Ok(()),
                    false => wrong(
                        "[sysbench]: threads from 1 to 100, tables from 1 to 64, rows from 100 to 10000000",
                    ),
                }
            }
            Load::RedisBenchmark(RedisBenchmark { clients, pipeline }) => {
                match (1..=1000).contains(clients) && (1..=1000).contains(pipeline) {
                    true => Ok(()),
                    false => wrong("[redis-benchmark]: clients and pipeline from 1 to 1000"),
                }
            }
            Load::DbBench(DbBench { threads }) if !(1..=64).contains(threads) => {
                wrong("[db-bench]: threads from 1 to 64")
            }
            Load::DbBench(_) => Ok(()),
        }
    }
}

/// Clients of pgbench, one commit a transaction.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pgbench {
    /// Which of its built-in scripts.
    pub test: Test,
    pub clients: usize,
    /// 100,000 accounts (16 MB) each.
    pub scale: u32,
}

/// The SLOB method: rows of one block each, updated a work unit at a time through an index.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slob {
    /// Parameters by SLOB's own names, as in a `slob.conf`.
    pub conf: Spanned<BTreeMap<String, Setting>>,
    /// When sessions wait for durability.
    pub commit: CommitMode,
    pub schemas: u32,
    /// Sessions in each schema.
    pub threads: u32,
}

/// The TPROC-C-like mix: its consistency conditions are checked after every run, and after a kill at the end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tprocc {
    pub warehouses: u32,
    /// 100000 as specified.
    pub items: u32,
    /// Of a district; 3000 as specified.
    pub customers: u32,
    /// Virtual users, without keying and thinking time.
    pub users: u32,
}

/// sysbench's `oltp_update_index` on MariaDB: an indexed column counted up, one row a transaction.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sysbench {
    pub threads: u32,
    pub tables: u32,
    /// Of each table.
    pub rows: u32,
}

/// redis-benchmark's SET; every turn begins with an empty database.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedisBenchmark {
    pub clients: u32,
    /// Commands sent before a reply is waited for.
    pub pipeline: u32,
}

/// RocksDB's db_bench, `fillrandom`; every turn begins with an empty database.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DbBench {
    pub threads: u32,
}

impl Tprocc {
    fn check(&self) -> Checked {
        let Tprocc { warehouses, items, customers, users } = *self;
        let fits = [(warehouses, 1, 1000), (items, 100, 100_000), (customers, 10, 3000), (users, 1, 40)];
        if fits.into_iter().all(|(value, least, most)| (least..=most).contains(&value)) {
            return Ok(());
        }
        wrong(
            "[tprocc]: warehouses from 1 to 1000, items from 100 to 100000, customers from 10 to 3000, users from 1 to 40",
        )
    }

    fn in_words(&self) -> String {
        let Tprocc { warehouses, items, customers, users } = self;
        format!(
            "TPROC-C-like mix (no result of TPC-C), {users} users without keying time, warehouses: {warehouses}, items: {items}, \
             customers of a district: {customers}; commit mode: per transaction, each waits until it is durable"
        )
    }

    /// What the tables take, bytes: some 100 MB a warehouse as specified.
    fn bytes(&self) -> u64 {
        let stock = u64::from(self.items) * 400;
        u64::from(self.warehouses) * (stock + u64::from(self.customers) * 10 * 2000) + stock
    }
}

impl Pgbench {
    fn check(&self) -> Checked {
        if !(1..=40).contains(&self.clients) || self.scale == 0 {
            return wrong("[pgbench]: clients from 1 to 40, scale from 1");
        }
        Ok(())
    }

    fn in_words(&self) -> String {
        let (test, clients, scale) = (self.test.title(), self.clients, self.scale);
        let commits = match self.test.updates() {
            true => "commit mode: per operation, each waits until it is durable",
            false => "commits nothing",
        };
        format!("pgbench {test}, {clients} clients, scale {scale}; {commits}")
    }
}

impl Slob {
    fn check(&self) -> Checked {
        let at = || self.conf.span();
        if let Err(mistake) = self.bytes() {
            return Err(Wrong { at: at(), what: format!("conf: {mistake}") });
        }
        if self.schemas == 0 || !(1..=40).contains(&(self.schemas * self.threads)) {
            return Err(Wrong { at: at(), what: "[slob]: schemas × threads from 1 to 40 sessions".into() });
        }
        Ok(())
    }

    /// Its parameters as words.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, String)> {
        self.conf.get_ref().iter().map(|(name, value)| (name.as_str(), value.to_string()))
    }

    /// What the tables take, bytes.
    ///
    /// # Errors
    /// A parameter that is none, or whose value cannot be.
    fn bytes(&self) -> Result<u64, String> {
        let mut conf = Conf::default();
        for (name, value) in self.parameters() {
            conf.set(name, &value).map_err(|mistake| mistake.to_string())?;
        }
        const BLOCK: u64 = 8192;
        Ok((conf.scale.blocks(BLOCK) + conf.scan_table_sz.blocks(BLOCK)) * BLOCK * u64::from(self.schemas))
    }

    fn in_words(&self) -> String {
        let conf: Vec<String> = self.parameters().map(|(name, value)| format!("{name}={value}")).collect();
        let mode = match self.commit {
            CommitMode::PerOperation => "per operation, each waits until it is durable",
            CommitMode::Asynchronous => "per operation, but one wait when the session ends (as PL/SQL)",
            CommitMode::OneTransaction => "one transaction a session",
        };
        format!(
            "SLOB method, schemas: {}, threads of each: {}, {}; commit mode: {mode}",
            self.schemas,
            self.threads,
            conf.join(" ")
        )
    }
}
