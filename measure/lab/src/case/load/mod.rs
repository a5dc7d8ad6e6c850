//! The loads a case file can ask for: a table each, of which a case has one.

mod others;
mod postgres;

use seawall_load::installed::Tool;

pub use others::{DbBench, Defined, Definitions, Etcd, Files, Lmdb, RedisBenchmark, Sqlite, Sysbench};
pub use postgres::{Pgbench, Slob, Tprocc};

use super::Product;
use super::wrong::Checked;

/// A case's load.
#[derive(Clone, Copy, Debug)]
pub enum Load<'a> {
    Pgbench(&'a Pgbench),
    Slob(&'a Slob),
    Tprocc(&'a Tprocc),
    Sysbench(&'a Sysbench),
    RedisBenchmark(&'a RedisBenchmark),
    DbBench(&'a DbBench),
    Sqlite(&'a Sqlite),
    Lmdb(&'a Lmdb),
    Files(&'a Files),
    Definitions(&'a Definitions),
    Etcd(&'a Etcd),
}

impl Load<'_> {
    /// The tables of a case file.
    pub const TABLES: &'static str = "[pgbench], [slob], [tprocc], [sysbench], [redis-benchmark], [db-bench], [sqlite], [lmdb], [files], \
         [definitions] or [etcd]";

    /// What it is a load of.
    pub fn product(self) -> Product {
        match self {
            Load::Pgbench(_) | Load::Slob(_) | Load::Tprocc(_) => Product::Postgres,
            Load::Sysbench(_) => Product::Mariadb,
            Load::RedisBenchmark(_) => Product::Redis,
            Load::DbBench(_) => Product::Rocksdb,
            Load::Sqlite(_) => Product::Sqlite,
            Load::Lmdb(_) => Product::Lmdb,
            Load::Files(_) => Product::Files,
            Load::Definitions(load) if load.of != Defined::Tables => Product::Postgres,
            Load::Definitions(_) => Product::Mariadb,
            Load::Etcd(_) => Product::Etcd,
        }
    }

    /// The program of others that makes it. (pgbench comes with PostgreSQL, and is looked for there.)
    pub fn tool(self) -> Option<Tool> {
        match self {
            Load::Sysbench(_) => Some(Tool::Sysbench),
            Load::RedisBenchmark(_) => Some(Tool::RedisBenchmark),
            Load::DbBench(_) => Some(Tool::DbBench),
            _ => None,
        }
    }

    /// In words, commit mode named.
    pub fn in_words(self) -> String {
        match self {
            Load::Pgbench(load) => load.in_words(),
            Load::Slob(load) => load.in_words(),
            Load::Tprocc(load) => load.in_words(),
            Load::Sysbench(load) => load.in_words(),
            Load::RedisBenchmark(load) => load.in_words(),
            Load::DbBench(load) => load.in_words(),
            Load::Sqlite(load) => load.in_words(),
            Load::Lmdb(load) => load.in_words(),
            Load::Files(load) => load.in_words(),
            Load::Definitions(load) => load.in_words(),
            Load::Etcd(load) => load.in_words(),
        }
    }

    /// What its tables take on the disk, bytes; of what begins empty: what it may write.
    pub fn table_bytes(self) -> u64 {
        match self {
            Load::Pgbench(load) => u64::from(load.scale) << 24,
            Load::Slob(load) => load.bytes().unwrap_or(0),
            Load::Tprocc(load) => load.bytes(),
            Load::Sysbench(load) => u64::from(load.tables) * u64::from(load.rows) * 400 + (64 << 20),
            _ => 512 << 20,
        }
    }

    /// Whether its numbers make sense.
    pub(super) fn check(self) -> Checked {
        match self {
            Load::Pgbench(load) => load.check(),
            Load::Slob(load) => load.check(),
            Load::Tprocc(load) => load.check(),
            Load::Sysbench(load) => load.check(),
            Load::RedisBenchmark(load) => load.check(),
            Load::DbBench(load) => load.check(),
            Load::Sqlite(load) => load.check(),
            Load::Lmdb(_) | Load::Files(_) | Load::Definitions(_) => Ok(()),
            Load::Etcd(load) => load.check(),
        }
    }
}
