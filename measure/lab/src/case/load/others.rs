//! Loads of other databases: tools that are installed with them, and small programs of ours.

use serde::Deserialize;

use crate::case::wrong::{Checked, within};

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
    /// Of each program.
    pub threads: u32,
    /// Programs at once, each with a store of its own.
    #[serde(default = "one")]
    pub programs: u32,
}

/// One UPDATE and one INSERT a transaction; every turn begins with empty databases.
///
/// Settings are its journal mode (`journal_mode`: `wal`, `delete`, `truncate`, `persist`) and `synchronous`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sqlite {
    /// Programs at once, each with a database of its own.
    #[serde(default = "one")]
    pub programs: u32,
}

/// One put of 150 bytes a transaction, from an empty database.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lmdb {}

/// New files of 4 KiB, each synced and renamed over the old one, and the directory synced; any program's work.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// New directories instead, each with such a file, that are put in place by a rename.
    #[serde(default)]
    pub parts: bool,
}

/// CREATE and DROP, one pair after the other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definitions {
    pub of: Defined,
}

/// What is made and dropped.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Defined {
    /// Of PostgreSQL: some 300 files each.
    Databases,
    /// Of MariaDB: a file each, and its log of DDL.
    Tables,
    /// Of PostgreSQL: a table that is filled with 50,000 rows, some 7 MiB, and an index of it.
    FilledTables,
}

/// Puts of 256 bytes by clients that wait for each answer, from an empty database.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Etcd {
    pub clients: u32,
}

fn one() -> u32 {
    1
}

impl Sysbench {
    pub(super) fn check(&self) -> Checked {
        let Sysbench { threads, tables, rows } = *self;
        let numbers =
            [("threads", threads, 1..=100), ("tables", tables, 1..=64), ("rows", rows, 100..=10_000_000)];
        within("sysbench", &numbers)
    }

    pub(super) fn in_words(&self) -> String {
        let Sysbench { threads, tables, rows } = self;
        format!(
            "sysbench oltp_update_index, {threads} threads, tables: {tables}, rows of each: {rows}; commit mode: per operation, \
             each waits until it is durable"
        )
    }
}

impl RedisBenchmark {
    pub(super) fn check(&self) -> Checked {
        let numbers = [("clients", self.clients, 1..=1000), ("pipeline", self.pipeline, 1..=1000)];
        within("redis-benchmark", &numbers)
    }

    pub(super) fn in_words(&self) -> String {
        let RedisBenchmark { clients, pipeline } = self;
        format!(
            "redis-benchmark SET, {clients} clients, pipeline {pipeline}, 100 bytes each, from an empty database; commit mode: a \
             reply comes after the log's fsync"
        )
    }
}

impl DbBench {
    pub(super) fn check(&self) -> Checked {
        within("db-bench", &[("threads", self.threads, 1..=64), ("programs", self.programs, 1..=64)])
    }

    pub(super) fn in_words(&self) -> String {
        let DbBench { threads, programs } = self;
        let many = if *programs > 1 { format!("{programs} programs at once, ") } else { String::new() };
        format!(
            "db_bench fillrandom, {many}{threads} threads, from an empty database; commit mode: each put waits until it is durable"
        )
    }
}

impl Sqlite {
    pub(super) fn check(&self) -> Checked {
        within("sqlite", &[("programs", self.programs, 1..=64)])
    }

    pub(super) fn in_words(&self) -> String {
        format!(
            "SQLite, one UPDATE and one INSERT a transaction, programs with a database each: {}, from empty databases; commit \
             mode: per transaction, each waits until it is durable",
            self.programs
        )
    }
}

impl Lmdb {
    pub(super) fn in_words(&self) -> String {
        "LMDB, one put of 150 bytes a transaction, from an empty database; commit mode: each put waits until it is durable"
            .to_owned()
    }
}

impl Files {
    pub(super) fn in_words(&self) -> String {
        let what = match self.parts {
            false => "a new file of 4 KiB, fsync, rename over the old one, fsync of the directory",
            true => {
                "a new directory with a new file of 4 KiB, fsync of both, rename to its place, fsync of the directory above"
            }
        };
        format!("{what}; commit mode: each of them waits until it is durable")
    }
}

impl Definitions {
    pub(super) fn in_words(&self) -> String {
        let what = match self.of {
            Defined::Databases => "CREATE DATABASE and DROP DATABASE",
            Defined::Tables => "CREATE TABLE and DROP TABLE",
            Defined::FilledTables => "CREATE TABLE AS of 50,000 rows with CREATE INDEX, and DROP TABLE",
        };
        format!(
            "{what}, one pair after the other, counted as one; commit mode: each waits until it is durable"
        )
    }
}

impl Etcd {
    pub(super) fn check(&self) -> Checked {
        within("etcd", &[("clients", self.clients, 1..=1000)])
    }

    pub(super) fn in_words(&self) -> String {
        format!(
            "puts of 256 bytes, {} clients, from an empty database; commit mode: an answer comes after the log's fsync",
            self.clients
        )
    }
}
