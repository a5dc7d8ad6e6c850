//! MariaDB on each side: a data directory, a server, its clients. It runs as the lab's user, with no option file.

mod server;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub use seawall_load::mariadb::DATABASE;
pub use server::{Server, place, try_bare_start};

use crate::lab::Lab;
use crate::process::run;
use crate::tools::find_in_path;

/// The server program.
pub fn program() -> Result<PathBuf> {
    let usual = PathBuf::from("/usr/sbin/mariadbd");
    let found = if usual.is_file() { Some(usual) } else { find_in_path("mariadbd") };
    found.context("MariaDB is not installed: apt-get install mariadb-server")
}

/// Makes an empty data directory.
pub fn install(lab: &Lab, data: &Path) -> Result<()> {
    lab.fresh_dir(data)?;
    let mut install = lab.command("mariadb-install-db");
    install.args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"]);
    install.arg(format!("--datadir={}", data.display()));
    run(install, "mariadb-install-db").map(drop)
}

/// The options of every server: durable, with a binary log; of two that set the same the last one counts.
pub const SETTINGS: [&str; 9] = [
    "--no-defaults",
    "--skip-networking",
    "--server-id=1",
    "--log-bin=binlog",
    "--innodb-buffer-pool-size=256M",
    "--innodb-log-file-size=96M",
    "--loose-innodb-buffer-pool-dump-at-shutdown=0",
    "--innodb-flush-log-at-trx-commit=1",
    "--sync-binlog=1",
];
/// What those that are unsafe set differently.
const UNSAFE: [&str; 2] = ["--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0"];
