//! Whether power can be cut here at all: what a machine must offer, and what is missing.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use nix::unistd::geteuid;

use crate::file_system::FileSystem;
use crate::outside::BASE;
use crate::plan::Database;
use crate::program::installed;
use crate::{etcd, mariadb, postgres, redis, store};

/// Checks everything that the rounds of these databases need, and makes the empty directory they mount on.
///
/// # Errors
/// What is missing.
pub fn check(databases: &[Database], file_system: FileSystem) -> Result<()> {
    ensure!(geteuid().is_root(), "mounting and namespaces need root");
    for device in ["/dev/fuse", "/dev/loop-control"] {
        ensure!(Path::new(device).exists(), "{device} is missing (modprobe fuse loop)");
    }
    ensure!(Path::new("/proc/self/timens_offsets").exists(), "the kernel has no time namespaces (5.6)");
    // fuser's own mount opens it; opening it says whether a container forbids that.
    std::fs::File::options().read(true).write(true).open("/dev/fuse").context("cannot open /dev/fuse")?;
    for needed in file_system.programs() {
        installed(needed, "-V")?;
    }
    installed("losetup", "--version")?;
    let can = Command::new("unshare").args(["--mount", "--pid", "--time", "--fork", "true"]).status();
    ensure!(can.is_ok_and(|status| status.success()), "namespaces are not allowed here");
    for database in databases {
        match database {
            Database::Postgres => postgres::installed()?,
            Database::Mariadb => mariadb::installed()?,
            Database::Redis => redis::installed()?,
            Database::Etcd => etcd::installed()?,
            Database::Sqlite => installed("sqlite3", "--version")?,
            Database::Rocksdb | Database::Lmdb => store::installed(*database)?,
            Database::Files => {}
        }
    }
    std::fs::create_dir_all(BASE).with_context(|| format!("cannot create {BASE}"))
}
