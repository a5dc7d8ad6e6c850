//! The users that servers run as: they refuse root, or nobody runs them as root.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use nix::unistd::{User, chown};

/// The user of this name.
///
/// # Errors
/// If there is none.
pub fn named(name: &str) -> Result<User> {
    User::from_name(name)?.with_context(|| format!("there is no user {name}: make deps"))
}

/// A command that this user will run.
///
/// # Errors
/// As [`named`].
pub fn command(name: &str, program: impl AsRef<OsStr>) -> Result<Command> {
    let user = named(name)?;
    let mut command = Command::new(program);
    command.uid(user.uid.as_raw()).gid(user.gid.as_raw()).env("HOME", "/tmp").current_dir("/tmp");
    Ok(command)
}

/// A directory of this user's, made if it is not there.
///
/// # Errors
/// As [`named`], or if it cannot be made.
pub fn directory(name: &str, path: &Path) -> Result<()> {
    let user = named(name)?;
    fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
    chown(path, Some(user.uid), Some(user.gid))
        .with_context(|| format!("cannot give {} to {name}", path.display()))
}
