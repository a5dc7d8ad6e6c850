//! The log that is made where there is no persistent memory: a file beside the database's directory.
//!
//! It is `main.seawall` beside `…/main`: on the same file system, found again by the same command, and outside of what
//! the database and its backups take for theirs. Commands that do not know the data find it by notes: symbolic
//! links in a directory of the user's that outlives a restart of the machine. A note that is lost costs a `--pool`.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nix::unistd::geteuid;

/// Where the log of the database in this directory lies, which is a real path. `at` says where we find a path.
///
/// # Errors
/// If nothing can lie beside it on the same file system.
pub fn place(data: &Path, at: impl Fn(&Path) -> PathBuf) -> Result<PathBuf> {
    let (Some(parent), Some(name)) = (data.parent(), data.file_name()) else {
        bail!("no file can lie beside {}", data.display());
    };
    let device = |of: &Path| fs::metadata(at(of)).map(|m| m.dev()).with_context(|| of.display().to_string());
    if device(parent)? != device(data)? {
        bail!("a file system is mounted at {}: a log beside it would lie on another one", data.display());
    }
    let mut name: OsString = name.into();
    name.push(".seawall");
    Ok(parent.join(name))
}

/// Notes where a log is, for commands that do not know the data.
pub fn note(log: &Path) {
    let dir = notes();
    // Whoever cannot note it names it with --pool.
    let _ = DirBuilder::new().mode(0o700).create(&dir);
    if is_mine(&dir) {
        let mut hasher = DefaultHasher::new();
        log.hash(&mut hasher);
        let _ = symlink(log, dir.join(format!("{:016x}", hasher.finish())));
    }
}

/// The logs that were noted and are still there.
pub fn noted() -> Vec<PathBuf> {
    let dir = notes();
    if !is_mine(&dir) {
        return Vec::new();
    }
    let links = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = links.filter_map(|link| fs::canonicalize(link.path()).ok()).collect();
    found.sort();
    found.dedup();
    found
}

/// `/var/tmp` may be written by everybody: what is there under our name need not be ours.
fn is_mine(dir: &Path) -> bool {
    let found = fs::symlink_metadata(dir);
    found.is_ok_and(|m| m.is_dir() && m.uid() == geteuid().as_raw() && m.mode() & 0o022 == 0)
}

/// Another place for tests.
fn notes() -> PathBuf {
    let usual = || format!("/var/tmp/seawall-{}", geteuid()).into();
    std::env::var_os("SEAWALL_NOTES").map_or_else(usual, PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_is_outside_and_on_the_same_file_system() {
        let dir = tempfile::tempdir().expect("a directory");
        let data = dir.path().join("main");
        fs::create_dir(&data).expect("made");
        assert_eq!(place(&data, Path::to_owned).expect("a place"), dir.path().join("main.seawall"));
        let error = place(Path::new("/proc"), Path::to_owned).expect_err("a mount").to_string();
        assert!(error.contains("a file system is mounted at /proc"), "{error}");
        assert!(place(Path::new("/"), Path::to_owned).is_err());
    }
}
