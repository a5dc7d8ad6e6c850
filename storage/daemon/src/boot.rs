//! Which pools of this machine are recovered when it starts, before anything may read their files
//! (`seawall recover --all`).
//!
//! A pool that survives a power cut enters the registry before its log may hold anything, and leaves it when the log is
//! closed in order. So what is found here at a start of the machine is what a crash left, and nothing else: a machine
//! that was shut down in order has nothing to look at.
//!
//! The registry is a directory of symbolic links to pools: atomic, of any bytes, readable with `ls -l`. Everybody may
//! add a link of their own (mode 1777); whose it is says who registered. A machine without that directory, a
//! container for example, has no registry, and nothing is recovered at its start.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use seawall_media::durable;

use crate::place;

/// The registry; the package makes it.
pub const REGISTRY: &str = "/var/lib/seawall/boot";
/// Another one, for tests and for systems whose `/var/lib` is not their own.
const VARIABLE: &str = "SEAWALL_BOOT_REGISTRY";
/// Names of devices that stay the same when the machine starts again.
const STABLE_NAMES: [&str; 3] = ["/dev/disk/by-partuuid", "/dev/disk/by-id", "/dev/mapper"];

/// A pool that is to be recovered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The pool.
    pub pool: PathBuf,
    /// The user that registered it.
    pub by: u32,
    link: PathBuf,
}

/// Where the registry is.
pub fn registry() -> PathBuf {
    std::env::var_os(VARIABLE).map_or_else(|| REGISTRY.into(), PathBuf::from)
}

/// Registers a pool, durably. False if this machine has no registry.
///
/// # Errors
/// If it has one, and the pool cannot be entered.
pub fn enter(pool: &Path) -> io::Result<bool> {
    enter_in(&registry(), pool)
}

/// Takes a pool out. True if it was in. What cannot be removed stays: it costs a look at the next start.
pub fn leave(pool: &Path) -> bool {
    leave_in(&registry(), pool)
}

/// All pools that are registered.
///
/// # Errors
/// If there is a registry that cannot be read, or that is another user's than root's or ours.
pub fn entries() -> io::Result<Vec<Entry>> {
    entries_in(&registry())
}

fn enter_in(registry: &Path, pool: &Path) -> io::Result<bool> {
    if !registry.is_dir() {
        return Ok(false);
    }
    let pool = stable_name(&std::path::absolute(pool)?);
    let link = registry.join(link_name(&pool));
    match symlink(&pool, &link) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists && fs::read_link(&link)? != pool => {
            // Another pool that had the same hash, of which we know nothing any more.
            fs::remove_file(&link)?;
            symlink(&pool, &link)?;
        }
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    durable::sync_directory(registry)?;
    Ok(true)
}

fn leave_in(registry: &Path, pool: &Path) -> bool {
    let Ok(pool) = std::path::absolute(pool) else { return false };
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let all = entries_in(registry).unwrap_or_default();
    let mine = all.iter().filter(|entry| entry.pool == pool || real(&entry.pool) == real(&pool));
    mine.filter(|entry| fs::remove_file(&entry.link).is_ok()).count() > 0
}

fn entries_in(registry: &Path) -> io::Result<Vec<Entry>> {
    let found = match fs::read_dir(registry) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        found => found?,
    };
    let owner = fs::metadata(registry)?.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(format!("belongs to user {owner}, not to root")));
    }
    let entry = |link: PathBuf| {
        let by = link.symlink_metadata().ok()?.uid();
        Some(Entry { pool: fs::read_link(&link).ok()?, by, link })
    };
    let mut all: Vec<Entry> = found.flatten().filter_map(|file| entry(file.path())).collect();
    all.sort();
    Ok(all)
}

/// One link for a pool and a user: others cannot be kept from registering theirs by accident.
fn link_name(pool: &Path) -> OsString {
    format!("{}.{}", place::name(pool), rustix::process::geteuid().as_raw()).into()
}

/// Of a device the name that it keeps, if it has one.
fn stable_name(pool: &Path) -> PathBuf {
    if !pool.starts_with("/dev") || pool.starts_with("/dev/shm") {
        return pool.to_owned();
    }
    let links = STABLE_NAMES.iter().flat_map(|dir| fs::read_dir(dir).into_iter().flatten().flatten());
    let mut names: Vec<PathBuf> = links
        .map(|link| link.path())
        .filter(|link| fs::canonicalize(link).is_ok_and(|real| real == pool))
        .collect();
    names.sort();
    names.into_iter().next().unwrap_or_else(|| pool.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_enters_once_and_leaves_by_any_of_its_paths() {
        let dir = tempfile::tempdir().expect("a directory");
        let (registry, pool, other) =
            (dir.path().join("boot"), dir.path().join("a pool"), dir.path().join("other"));
        assert!(!enter_in(&registry, &pool).expect("no registry"), "the machine has none");
        fs::create_dir(&registry).expect("made");
        fs::write(&pool, "").expect("a file");
        for _ in 0..2 {
            assert!(enter_in(&registry, &pool).expect("entered"));
        }
        enter_in(&registry, &other).expect("one that is not there can be registered too");
        let pools = || entries_in(&registry).expect("read").into_iter().map(|e| e.pool).collect::<Vec<_>>();
        assert_eq!(pools(), [pool.clone(), other.clone()]);
        let link = dir.path().join("link");
        symlink(&pool, &link).expect("a link");
        assert!(leave_in(&registry, &link) && !leave_in(&registry, &pool));
        assert_eq!(pools(), std::slice::from_ref(&other));
        assert!(leave_in(&registry, &other), "though it is not there");
        assert!(pools().is_empty());
    }
}
