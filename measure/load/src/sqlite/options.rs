//! What a run is asked for, and what it says in the end.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::latency::Summary;

/// SQLite's journal modes worth comparing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "SQLite's own words")]
pub enum JournalMode {
    Wal,
    Delete,
    Truncate,
    Persist,
}

impl JournalMode {
    /// The word for `PRAGMA journal_mode`.
    pub fn pragma(self) -> &'static str {
        match self {
            JournalMode::Wal => "wal",
            JournalMode::Delete => "delete",
            JournalMode::Truncate => "truncate",
            JournalMode::Persist => "persist",
        }
    }
}

/// How far a commit waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Synchronous {
    /// Durable with a write-ahead log. With a rollback journal the last commit may be undone by a power
    /// cut: that journal's removal, which is the commit, is not synced.
    Full,
    /// Durable in every journal mode.
    Extra,
    /// Never waits: unsafe.
    Off,
}

impl Synchronous {
    pub(super) fn pragma(self) -> &'static str {
        match self {
            Synchronous::Full => "FULL",
            Synchronous::Extra => "EXTRA",
            Synchronous::Off => "OFF",
        }
    }
}

/// Options of `seawall-load sqlite`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The database file (created when missing)
    #[arg(long)]
    pub db: PathBuf,
    /// Journal mode
    #[arg(long, value_enum, default_value_t = JournalMode::Wal)]
    pub journal: JournalMode,
    /// `PRAGMA synchronous`
    #[arg(long, value_enum, default_value_t = Synchronous::Full)]
    pub synchronous: Synchronous,
    /// Accounts in the table
    #[arg(long, default_value_t = 10_000)]
    pub rows: u32,
    /// End after this many seconds (0: only create the database)
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// End after this many transactions
    #[arg(long)]
    pub ops: Option<u64>,
    /// Make a new database for each transaction (DB-0, DB-1, …), timed from before it is there to its first commit
    #[arg(long, conflicts_with = "ledger")]
    pub anew: bool,
    /// Number of this client, as in the ledger
    #[arg(long, default_value_t = 1)]
    pub client: i32,
    /// Note each acknowledged commit in this file (keep it outside the database's directory)
    #[arg(long)]
    pub ledger: Option<PathBuf>,
}

/// The result of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Journal mode.
    pub journal: JournalMode,
    /// Synchronous setting.
    pub synchronous: Synchronous,
    /// The library's version.
    pub sqlite_version: String,
    /// Acknowledged commits.
    pub commits: u64,
    /// How long it ran.
    pub seconds: f64,
    /// Commits a second.
    pub tps: f64,
    /// Latency of one transaction.
    pub latency: Summary,
}
