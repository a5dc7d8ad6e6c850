//! What stands beside a machine and survives it, and where its disk is.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::{Context, Result};

/// Everything outside the machine, in a tmpfs of the campaign's own.
pub const BASE: &str = "/run/seawall-powercut";
/// Where the disk's file system is mounted.
pub const DATA: &str = "/run/seawall-powercut/data";

/// Where a daemon of root's has its socket: in the machine's own memory.
///
/// # Errors
/// If it cannot be made.
pub fn session() -> Result<&'static Path> {
    let session = Path::new("/tmp/session");
    match fs::DirBuilder::new().mode(0o700).create(session) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error).context("cannot make a session"),
        _ => Ok(session),
    }
}
