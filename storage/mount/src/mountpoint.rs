//! Mountpoints and backing directories: what may be mounted where, and what a dead mount left.

mod refused;

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::mount::{MntFlags, umount2};
use rustix::fs::{FlockOperation, flock};
use seawall_media::mounts::unescaped;
use seawall_media::process;

pub use refused::Refused;
pub(crate) use refused::explain;

/// The type that mounts of ours have in `/proc/mounts`: `fuse.seawall`.
pub const TYPE: &str = "seawall";

/// A mount, as the kernel lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its type.
    pub kind: String,
    /// What is mounted.
    pub source: PathBuf,
}

/// What is mounted at exactly this path. The last one, should several lie upon each other.
///
/// # Errors
/// If the kernel's list cannot be read.
pub fn listed(at: &Path) -> io::Result<Option<Listed>> {
    Ok(find(&std::fs::read("/proc/self/mounts")?, at))
}

fn find(list: &[u8], at: &Path) -> Option<Listed> {
    mounts(list).filter(|(path, _)| path == at).map(|(_, found)| found).next_back()
}

/// The lines of a list: where, and what.
fn mounts(list: &[u8]) -> impl DoubleEndedIterator<Item = (PathBuf, Listed)> {
    list.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        let (source, path, kind) = (fields.next()?, fields.next()?, fields.next()?);
        let text = |bytes: &[u8]| PathBuf::from(std::ffi::OsStr::from_bytes(&unescaped(bytes)));
        let kind = String::from_utf8_lossy(kind).into_owned();
        Some((text(path), Listed { kind, source: text(source) }))
    })
}

/// The real paths of both, if the one may be mounted at the other. A mount whose process died is detached.
///
/// # Errors
/// [`Refused`].
pub fn check(backing: &Path, mountpoint: &Path) -> Result<(PathBuf, PathBuf), Refused> {
    is_there(Path::new("/dev/fuse"))?;
    let place = absolute(mountpoint)?;
    detach_if_dead(&place)?;
    let missing = |path: &Path| {
        let path = path.to_owned();
        move |error| Refused::Missing { path, error }
    };
    let backing = std::fs::canonicalize(backing).map_err(missing(backing))?;
    let place = std::fs::canonicalize(&place).map_err(missing(&place))?;
    for dir in [&backing, &place] {
        if !dir.is_dir() {
            return Err(Refused::NoDirectory(dir.clone()));
        }
    }
    if backing.starts_with(&place) || place.starts_with(&backing) {
        return Err(Refused::Nested { backing, mountpoint: place });
    }
    if let Some(by) = listed(&place).map_err(missing(&place))? {
        return Err(Refused::Mounted { at: place, by: format!("{} ({})", by.source.display(), by.kind) });
    }
    let mut entries = std::fs::read_dir(&place).map_err(missing(&place))?;
    if entries.next().is_some() {
        return Err(Refused::NotEmpty(place));
    }
    Ok((backing, place))
}

/// Whether we may open the device the mount finds out: fusermount3 has more rights than we.
fn is_there(device: &Path) -> Result<(), Refused> {
    match File::options().read(true).write(true).open(device) {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(Refused::NoFuse(error)),
        _ => Ok(()),
    }
}

/// The path as the kernel lists it, asked of the directory above: a dead mount does not answer.
fn absolute(path: &Path) -> Result<PathBuf, Refused> {
    let missing = |error| Refused::Missing { path: path.to_owned(), error };
    let path = std::path::absolute(path).map_err(missing)?;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(path) };
    let parent = std::fs::canonicalize(parent).map_err(missing)?;
    let place = parent.join(name);
    match std::fs::read_link(&place) {
        Ok(_) => std::fs::canonicalize(&place).map_err(missing),
        Err(_) => Ok(place),
    }
}

/// A mount of ours whose process has died answers ENOTCONN: nothing can be lost by detaching it.
fn detach_if_dead(place: &Path) -> Result<(), Refused> {
    while is_dead(place) {
        detach(place).map_err(|error| Refused::Failed { what: "cannot detach a dead mount", error })?;
    }
    Ok(())
}

/// True for a mount of ours whose process has died.
pub fn is_dead(place: &Path) -> bool {
    use rustix::io::Errno;
    // The kernel takes its io_urings down behind the end of the process; until then it says that a request came to nothing.
    // A process that lives says none of these.
    let dead = |e| matches!(e, Errno::NOTCONN | Errno::CANCELED | Errno::CONNABORTED);
    // What stat(2) says may be remembered from its life; this is always asked of the process.
    let gone = rustix::fs::statvfs(place).is_err_and(dead);
    gone && listed(place).ok().flatten().is_some_and(|found| is_ours(&found))
}

fn is_ours(found: &Listed) -> bool {
    found.kind == format!("fuse.{TYPE}")
}

fn detach(place: &Path) -> io::Result<()> {
    match umount2(place, MntFlags::MNT_DETACH) {
        Err(nix::errno::Errno::EPERM) => fusermount(place, &["-u", "-z"]),
        done => done.map_err(io::Error::from),
    }
}

fn fusermount(place: &Path, options: &[&str]) -> io::Result<()> {
    let mut command = Command::new("fusermount3");
    command.args(options).arg("--").arg(place).stdin(Stdio::null()).stdout(Stdio::null());
    let done = command.stderr(Stdio::piped()).output()?;
    match done.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&done.stderr).trim().to_owned())),
    }
}

/// Says that this directory is mounted, as long as the file is open: other mounts of it are refused.
///
/// # Errors
/// [`Refused::InUse`].
pub fn claim(backing: &Path) -> Result<File, Refused> {
    let dir = File::open(backing).map_err(|error| Refused::Missing { path: backing.to_owned(), error })?;
    match flock(&dir, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(dir),
        Err(_) => Err(Refused::InUse(backing.to_owned())),
    }
}

/// How long we take it that a busy mount is in use only by processes that are about to let it go: a program with threads
/// closes its last file, and what another of its threads has forked holds that until it executes its program.
const SETTLES: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(10);

/// Unmounts, and waits until the mount's process has closed the log. Returns the backing directory.
///
/// # Errors
/// [`Refused`].
pub fn unmount(mountpoint: &Path) -> Result<PathBuf, Refused> {
    let place = absolute(mountpoint)?;
    let found = listed(&place).map_err(|error| Refused::Missing { path: place.clone(), error })?;
    let Some(found) = found.filter(is_ours) else { return Err(Refused::NotOurs(place)) };
    if is_dead(&place) {
        detach_if_dead(&place)?;
        return Ok(found.source);
    }
    let begin = Instant::now();
    loop {
        match try_unmount(&place) {
            Err(Refused::Busy(_)) if begin.elapsed() < SETTLES => std::thread::sleep(PAUSE),
            done => return done.map(|()| found.source),
        }
    }
}

fn try_unmount(place: &Path) -> Result<(), Refused> {
    let done = match umount2(place, MntFlags::empty()) {
        Err(nix::errno::Errno::EPERM) => fusermount(place, &["-u"]),
        Err(nix::errno::Errno::EBUSY) => return Err(Refused::Busy(place.into())),
        done => done.map_err(io::Error::from),
    };
    done.map_err(|error| match error.to_string().contains("busy") {
        true => Refused::Busy(place.into()),
        false => Refused::Failed { what: "cannot unmount", error },
    })
}

/// One process of each mount namespace that has a mount of this directory. Those that we may look at.
pub fn holders(backing: &Path) -> Vec<u32> {
    let holds = |pid: &u32| {
        let list = std::fs::read(process::place(*pid).join("mounts")).unwrap_or_default();
        mounts(&list).any(|(_, found)| is_ours(&found) && found.source == backing)
    };
    let mut seen = std::collections::HashSet::new();
    let mut is_new = |pid: &u32| {
        process::place(*pid).join("ns/mnt").read_link().is_ok_and(|namespace| seen.insert(namespace))
    };
    process::all().filter(|pid| is_new(pid) && holds(pid)).collect()
}

/// Unmounts for good: what is in use is detached, and served until it is closed.
///
/// # Errors
/// If even that fails.
pub fn unmount_at_last(place: &Path) -> io::Result<()> {
    match umount2(place, MntFlags::empty()) {
        Ok(()) => Ok(()),
        Err(_) => detach(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_by_their_path() {
        let list = b"/a\\040b /m\\040p fuse.seawall rw 0 0\n/x /other ext4 rw 0 0\n/y /m\\040p ext4 ro 0 0\n";
        let found = find(list, Path::new("/other")).expect("listed");
        assert_eq!((found.kind.as_str(), found.source.as_path()), ("ext4", Path::new("/x")));
        let upper = find(list, Path::new("/m p")).expect("listed");
        assert_eq!(upper.source, Path::new("/y"), "the last one is the one that is seen");
        assert_eq!(find(list, Path::new("/m")), None);
    }

    #[test]
    fn a_directory_is_claimed_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let first = claim(dir.path()).expect("claimed");
        assert!(matches!(claim(dir.path()), Err(Refused::InUse(_))));
        drop(first);
        claim(dir.path()).expect("claimed again");
    }

    #[test]
    fn what_may_not_be_mounted_is_refused_by_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::create_dir_all(a.join("inner")).expect("made");
        std::fs::create_dir(&b).expect("made");
        assert!(check(&a, &b).is_ok());
        assert!(matches!(check(&a, &a.join("inner")), Err(Refused::Nested { .. })));
        assert!(matches!(check(&a.join("inner"), &a), Err(Refused::Nested { .. })));
        assert!(matches!(check(&dir.path().join("no"), &b), Err(Refused::Missing { .. })));
        assert!(matches!(check(&a, &b.join("no")), Err(Refused::Missing { .. })));
        std::fs::write(b.join("file"), "").expect("written");
        assert!(matches!(check(&a, &b), Err(Refused::NotEmpty(_))));
        assert!(matches!(check(&a, &b.join("file")), Err(Refused::NoDirectory(_))));
        assert!(matches!(check(&a, Path::new("/proc")), Err(Refused::Mounted { .. })));
        assert!(matches!(unmount(&b), Err(Refused::NotOurs(_))));
    }
}
