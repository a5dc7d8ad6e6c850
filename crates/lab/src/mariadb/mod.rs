//! MariaDB on each side: a data directory, a server, its clients. It runs as the lab's user, with no option file.

mod server;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub use seawall_load::mariadb::DATABASE;
pub use server::{Server, try_bare_start};

use crate::lab::Lab;
use crate::process::run;
use crate::side::Side;
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

/// The options of every server, whatever its side: durable, with a binary log, but for [`Side::Unsafe`].
fn settings(side: Side) -> Vec<String> {
    let durable = if side == Side::Unsafe { "0" } else { "1" };
    [
        "--no-defaults",
        "--skip-networking",
        "--server-id=1",
        "--log-bin=binlog",
        "--innodb-buffer-pool-size=256M",
        "--innodb-log-file-size=96M",
        "--loose-innodb-buffer-pool-dump-at-shutdown=0",
    ]
    .into_iter()
    .map(str::to_owned)
    .chain(["innodb-flush-log-at-trx-commit", "sync-binlog"].map(|name| format!("--{name}={durable}")))
    .collect()
}
