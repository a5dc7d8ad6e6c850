//! `ledger-etcd` and `check-etcd`: acknowledged puts against an unmodified etcd.
//!
//! Each client puts its next number under a key of its own and notes it in the ledger once the server has replied:
//! that is after the fsync of etcd's write-ahead log. Invariants: each client's keys are numbered without a gap, and
//! each value says which key it belongs to. A lost connection ends a client and is reported, not an error.

mod check;
mod connection;
mod run;

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

pub use check::{CheckOptions, check};
pub use connection::Connection;
pub use run::run;

/// Options of `seawall-load ledger-etcd`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Where the server takes clients: `127.0.0.1:2379`
    #[arg(long)]
    pub connect: String,
    /// Connections, each with its own sequence
    #[arg(long, default_value_t = 4)]
    pub clients: u32,
    /// End after this many seconds
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Bytes of a value
    #[arg(long, default_value_t = 256)]
    pub bytes: usize,
    /// Note each acknowledged put in this file
    #[arg(long)]
    pub ledger: Option<PathBuf>,
}

/// The result of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Puts the server acknowledged.
    pub acknowledged: u64,
    /// From the first to the last.
    pub seconds: f64,
    /// Clients whose connection broke, with what they were told: expected when the server is killed.
    pub disconnects: Vec<String>,
}

/// What all keys of a client begin with.
fn prefix_of(client: i32) -> String {
    format!("seawall/{client}/")
}

/// Keys sort as their numbers do.
fn key_of(client: i32, seq: i64) -> String {
    format!("{}{seq:012}", prefix_of(client))
}

/// The key, and as much behind it as is asked for.
fn value_of(client: i32, seq: i64, bytes: usize) -> String {
    let key = key_of(client, seq);
    format!("{key} {}", "x".repeat(bytes.saturating_sub(key.len() + 1)))
}
