//! Whether power can be cut here at all: what a machine must offer, and what is missing.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use nix::unistd::geteuid;

use crate::file_system::FileSystem;
use crate::outside::BASE;
use crate::plan::Database;
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
        program(needed, "-V")?;
    }
    program("losetup", "--version")?;
    let can = Command::new("unshare").args(["--mount", "--pid", "--time", "--fork", "true"]).status();
    ensure!(can.is_ok_and(|status| status.success()), "namespaces are not allowed here");
    if databases.contains(&Database::Postgres) {
        postgres::installed()?;
    }
    if databases.contains(&Database::Mariadb) {
        mariadb::installed()?;
    }
    if databases.contains(&Database::Redis) {
        redis::installed()?;
    }
    if databases.contains(&Database::Etcd) {
        etcd::installed()?;
    }
    for database in databases {
        store::installed(*database)?;
    }
    if databases.contains(&Database::Sqlite) {
        program("sqlite3", "--version")?;
    }
    std::fs::create_dir_all(BASE).with_context(|| format!("cannot create {BASE}"))
}

fn program(name: &str, harmless: &str) -> Result<()> {
    let found = Command::new(name).arg(harmless).output();
    ensure!(found.is_ok(), "{name} is not installed");
    Ok(())
}
