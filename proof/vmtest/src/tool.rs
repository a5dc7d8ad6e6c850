//! Programs of the distribution, run to their end.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

/// Where programs of the distribution are, beyond PATH.
const MORE: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

/// A program on PATH or in a system directory, or `None`.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = MORE.iter().map(PathBuf::from);
    std::env::split_paths(&path).chain(more).map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// A program, with the package that brings it in the message.
///
/// # Errors
/// If it is missing.
pub fn need(name: &str, package: &str) -> Result<PathBuf> {
    find(name).with_context(|| format!("{name} is missing: apt-get install {package}"))
}

/// Runs a command; it must succeed.
///
/// # Errors
/// What it said, if it failed.
pub fn run(command: &mut Command) -> Result<Output> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(output)
}

/// Runs a command and gives its standard output.
///
/// # Errors
/// As [`run`].
pub fn text(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8_lossy(&run(command)?.stdout).into_owned())
}

/// Makes a directory that has nothing in it, whatever was there.
///
/// # Errors
/// As [`directory`].
pub fn empty_directory(path: &Path) -> Result<()> {
    let _ = std::fs::remove_dir_all(path);
    directory(path)
}

/// Makes a directory with all above it.
///
/// # Errors
/// With its name.
pub fn directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))
}
