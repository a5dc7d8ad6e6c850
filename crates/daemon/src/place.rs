//! Where a pool's daemon is found: its socket and its log, from the pool's path alone.
//!
//! Both lie in a directory that belongs to the pool's *owner*, so that root finds the daemon of another
//! user's pool. Invariant: nobody but that owner and root can write into the directory.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Socket and log of one pool's daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The `SOCK_SEQPACKET` socket.
    pub socket: PathBuf,
    /// What the daemon has to say, line by line.
    pub log: PathBuf,
}

impl Place {
    fn within(dir: &Path, name: &str) -> Self {
        Self { socket: dir.join(format!("{name}.sock")), log: dir.join(format!("{name}.log")) }
    }
}

/// The place of a pool's daemon, its directory made if need be.
///
/// # Errors
/// If no directory can be made that belongs to the pool's owner alone.
pub fn make(pool: &Path) -> io::Result<Place> {
    let (name, uid) = name_and_owner(pool)?;
    let mut last = io::Error::other("there is no directory for run-time files");
    for dir in directories(uid) {
        match secure(&dir, uid) {
            Ok(()) => return Ok(Place::within(&dir, &name)),
            Err(error) => last = io::Error::new(error.kind(), format!("{}: {error}", dir.display())),
        }
    }
    Err(last)
}

/// Every place where a daemon of this pool may be listening.
///
/// # Errors
/// If the pool cannot be found.
pub fn candidates(pool: &Path) -> io::Result<Vec<Place>> {
    let (name, uid) = name_and_owner(pool)?;
    Ok(directories(uid).iter().map(|dir| Place::within(dir, &name)).collect())
}

fn name_and_owner(pool: &Path) -> io::Result<(String, u32)> {
    let real = fs::canonicalize(pool)?;
    let uid = fs::metadata(&real)?.uid();
    let file = real.file_name().unwrap_or(OsStr::new("pool")).to_string_lossy();
    let short: String = file.chars().filter(char::is_ascii_graphic).take(24).collect();
    Ok((format!("{short}-{:016x}", fnv1a(real.as_os_str().as_bytes())), uid))
}

/// FNV-1a: the name must come out the same in every build, which `std`'s hashers do not promise.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn directories(uid: u32) -> Vec<PathBuf> {
    let mine = rustix::process::getuid().as_raw() == uid;
    let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|_| mine);
    let usual = if uid == 0 { PathBuf::from("/run") } else { format!("/run/user/{uid}").into() };
    let mut parents: Vec<PathBuf> = session.into_iter().chain([usual]).collect();
    parents.dedup();
    let mut all: Vec<PathBuf> = parents
        .into_iter()
        .filter(|parent| fs::metadata(parent).is_ok_and(|m| m.uid() == uid))
        .map(|parent| parent.join("seawall"))
        .collect();
    all.push(format!("/tmp/seawall-{uid}").into());
    all
}

/// Makes the directory, or checks that it is a real one, the owner's, and closed to others.
fn secure(dir: &Path, uid: u32) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    let found = fs::symlink_metadata(dir)?;
    if found.is_dir() && found.uid() == uid && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(io::Error::other(format!("is not a directory of user {uid} alone (mode 0700)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_to_a_pool_leads_to_the_same_place() {
        let dir = tempfile::tempdir().expect("a directory");
        let pool = dir.path().join("a pool");
        fs::write(&pool, "").expect("a file");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&pool, &link).expect("a link");
        let all = candidates(&pool).expect("places");
        assert_eq!(candidates(&link).expect("places"), all);
        assert!(all.iter().all(|p| p.socket.as_os_str().len() < 108), "fits into sockaddr_un");
    }

    #[test]
    fn a_directory_others_may_write_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let uid = rustix::process::getuid().as_raw();
        secure(&dir.path().join("new"), uid).expect("made");
        let open = dir.path().join("open");
        DirBuilder::new().mode(0o700).create(&open).expect("made");
        fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("opened");
        assert!(secure(&open, uid).is_err());
    }
}
