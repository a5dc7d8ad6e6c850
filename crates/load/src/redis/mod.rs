//! `ledger-redis` and `check-redis`: acknowledged transactions against an unmodified Redis.
//!
//! Each client adds its next number to a set and counts it, in one transaction, and notes it in the ledger once
//! the server has replied. With `appendfsync always` that is after the log's fsync. Invariant: each set is as
//! large as its count. A lost connection ends a client and is reported, not an error.

mod check;
mod connection;
mod run;

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

pub use check::{CheckOptions, check};
pub use connection::{Connection, Reply};
pub use run::run;

/// Options of `seawall-load ledger-redis`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The server's socket
    #[arg(long)]
    pub socket: PathBuf,
    /// Connections, each with its own sequence
    #[arg(long, default_value_t = 4)]
    pub clients: u32,
    /// End after this many seconds
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Note each acknowledged transaction in this file
    #[arg(long)]
    pub ledger: PathBuf,
}

/// The result of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Transactions the server acknowledged.
    pub acknowledged: u64,
    /// Clients whose connection broke, with what they were told: expected when the server is killed.
    pub disconnects: Vec<String>,
}

fn set_of(client: i32) -> String {
    format!("seawall:{client}")
}

fn count_of(client: i32) -> String {
    format!("seawall-count:{client}")
}
