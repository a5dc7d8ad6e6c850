//! The client that the distribution has, and what it works on.

use std::path::Path;
use std::process::Command;

/// The database of all tables.
pub const DATABASE: &str = "seawall";
/// Its tables.
pub const TABLES: [&str; 3] = ["ledger", "accounts", "history"];

/// MariaDB's client, printing bare rows as they come.
pub(super) fn client(socket: &Path) -> Command {
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "--batch", "--skip-column-names", "--unbuffered", "--user=root"]);
    client.arg(format!("--socket={}", socket.display()));
    client
}
