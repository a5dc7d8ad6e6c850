//! `ledger-mariadb` and `check-mariadb`: acknowledged commits against an unmodified MariaDB.
//!
//! Each client is one of MariaDB's own (`mariadb`), fed by a thread. A transaction inserts a row `(client, seq)`
//! and moves something between an account and the history; it counts when the row that is selected behind its
//! COMMIT has come back. The server may be killed at any moment: that ends the clients and is no error.

mod check;
mod connection;
mod run;
mod server;

use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use serde::{Deserialize, Serialize};

pub use check::check;
pub use connection::{Connection, Values};
pub use run::run;
pub use server::told;

/// The database of all tables.
pub const DATABASE: &str = "seawall";
/// Its tables.
pub const TABLES: [&str; 3] = ["ledger", "accounts", "history"];

/// Options of `seawall-load ledger-mariadb`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Where the server listens, as its user root
    #[arg(long)]
    pub socket: PathBuf,
    /// Connections, each with its own sequence
    #[arg(long, default_value_t = 4)]
    pub clients: i32,
    /// End after this many seconds
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Note each acknowledged commit in this file
    #[arg(long)]
    pub ledger: PathBuf,
}

/// Options of `seawall-load check-mariadb`.
#[derive(Clone, Debug, Args)]
pub struct CheckOptions {
    /// Where the server listens, as its user root
    #[arg(long)]
    pub socket: PathBuf,
    /// The ledger its load wrote
    #[arg(long)]
    pub ledger: PathBuf,
}

/// The result of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Commits the server acknowledged.
    pub acknowledged: u64,
    /// Clients that ended before their time: expected when the server is killed.
    pub disconnects: u64,
}

/// MariaDB's client, printing bare rows as they come.
fn client(socket: &std::path::Path) -> Command {
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "--batch", "--skip-column-names", "--unbuffered", "--user=root"]);
    client.arg(format!("--socket={}", socket.display()));
    client
}
