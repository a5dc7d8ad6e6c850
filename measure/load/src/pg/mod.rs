//! `ledger-pg` and `check-pg`: acknowledged commits against an unmodified PostgreSQL.
//!
//! Each client commits one row `(client, seq)` after another with `synchronous_commit = on` and
//! notes it in the ledger once the server acknowledged it. The server may be killed at any moment:
//! a lost connection ends that client and is reported, not an error.

mod check;
mod run;
mod server;

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

pub(crate) use check::integrity;
pub use check::{CheckOptions, check};
pub use run::run;
pub(crate) use server::{checkpoint, counters, version};

use crate::latency::Summary;

/// Options of `seawall-load ledger-pg`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// How to connect, e.g. `host=/run/postgresql user=postgres dbname=postgres`
    #[arg(long)]
    pub connect: String,
    /// Connections, each with its own sequence
    #[arg(long, default_value_t = 4)]
    pub clients: u32,
    /// End after this many seconds
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Note each acknowledged commit in this file
    #[arg(long)]
    pub ledger: PathBuf,
}

/// The result of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Commits the server acknowledged.
    pub acknowledged: u64,
    /// Commits a second.
    pub tps: f64,
    /// How long it ran.
    pub seconds: f64,
    /// Latency of one commit.
    pub latency: Summary,
    /// Clients whose connection broke, with what they were told: expected when the server is killed.
    pub disconnects: Vec<String>,
}
