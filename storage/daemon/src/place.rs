//! Where a pool's daemon is found: its socket and its log, from the pool's path alone.
//!
//! Both lie in a directory that belongs to the pool's *owner*, so that root finds the daemon of another
//! user's pool. Invariant: nobody but that owner and root can write into the directory.
//!
//! A daemon that systemd starts as root for a database's user has its place below [`SERVICES`]: one that does
//! not depend on who is logged in, so that it can be written into a unit. Once it is there it is preferred by
//! all.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where the run-time directories of services are, one for each user: root's, and readable for all.
pub const SERVICES: &str = "/run/seawalld";

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

/// The place of a service's daemon: for the pool at `pool`, which must be its real path, owned by `uid`.
pub fn of_service(pool: &Path, uid: u32) -> Place {
    Place::within(&service_directory(uid), &name(pool))
}

/// Makes the directory of the services of a user. As root only.
///
/// # Errors
/// If it cannot be made, or somebody else made it.
pub fn make_for_service(uid: u32) -> io::Result<()> {
    let dir = service_directory(uid);
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", dir.display()));
    let made = DirBuilder::new().mode(0o755).recursive(true).create(SERVICES);
    made.and_then(|()| match DirBuilder::new().mode(0o700).create(&dir) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e),
        // `lchown`: between the two steps nobody but root can have put anything else there.
        Ok(()) => std::os::unix::fs::lchown(&dir, Some(uid), None),
    })
    .and_then(|()| secure(&dir, uid))
    .map_err(failed)
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
    Ok((name(&real), uid))
}

/// So much of a pool's own name is in its socket's.
const NAME_MAX: usize = 24;

pub(crate) fn name(real: &Path) -> String {
    let file = real.file_name().unwrap_or(OsStr::new("pool")).to_string_lossy();
    let short: String = file.chars().filter(char::is_ascii_graphic).take(NAME_MAX).collect();
    format!("{short}-{:016x}", fnv1a(real.as_os_str().as_bytes()))
}

/// FNV-1a: the name must come out the same in every build, which `std`'s hashers do not promise.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn service_directory(uid: u32) -> PathBuf {
    Path::new(SERVICES).join(uid.to_string())
}

fn directories(uid: u32) -> Vec<PathBuf> {
    let service = service_directory(uid);
    let service = fs::symlink_metadata(&service).is_ok_and(|m| m.uid() == uid).then_some(service);
    let mine = rustix::process::getuid().as_raw() == uid;
    let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|_| mine);
    let usual = if uid == 0 { PathBuf::from("/run") } else { format!("/run/user/{uid}").into() };
    let mut parents: Vec<PathBuf> = session.into_iter().chain([usual]).collect();
    parents.dedup();
    let owned = parents.into_iter().filter(|parent| fs::metadata(parent).is_ok_and(|m| m.uid() == uid));
    let mut all: Vec<PathBuf> =
        service.into_iter().chain(owned.map(|parent| parent.join("seawall"))).collect();
    // The last one is writable in a container, too, whose root is not.
    all.extend(["/tmp", "/dev/shm"].map(|parent| PathBuf::from(format!("{parent}/seawall-{uid}"))));
    all.retain(|dir| fits(dir));
    all
}

/// True if a socket in there has an address: a path of less than 108 bytes.
fn fits(dir: &Path) -> bool {
    const ADDRESS_MAX: usize = 107;
    let longest = NAME_MAX + 1 + 16 + ".sock".len();
    dir.as_os_str().len() + 1 + longest <= ADDRESS_MAX
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
    Err(io::Error::other(format!("it is not a directory that only user {uid} can use (mode 0700)")))
}

/// `path` with `suffix` behind its name, in the same directory.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
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
    fn a_directory_whose_sockets_had_no_address_is_passed_over() {
        assert!(fits(Path::new("/run/user/1000/seawall")) && fits(Path::new(&"/x".repeat(30))));
        assert!(!fits(Path::new(&"/x".repeat(31))) && !fits(Path::new(&"/x".repeat(75))));
    }

    #[test]
    fn a_services_place_follows_from_pool_and_user() {
        let place = of_service(Path::new("/mnt/pmem/pg.pool"), 115);
        assert_eq!(place.socket, Path::new("/run/seawalld/115/pg.pool-3cd9b96e4a26b351.sock"));
        let longest = of_service(Path::new("/mnt/a-pool-with-a-very-long-name-indeed.pool"), u32::MAX);
        assert!(longest.socket.as_os_str().len() < 108, "fits into sockaddr_un");
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
