//! A cache's place before there is a cache, for whoever sets one up: what a daemon's start would refuse. And its end.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstatvfs};
use seawall_cache::shared::{Header, Layout};
use seawall_media::Medium;
use zerocopy::FromBytes;

use super::options::{CacheOptions, default_path};
use super::policies;
use super::zone::{CacheError, failed, medium};
use crate::foreign;

/// Whether a pool on this medium can have such a cache: the zone's layout.
///
/// # Errors
/// [`CacheError`]: no size of a cache, or a log on a block device.
pub(super) fn layout(wanted: &CacheOptions, pool: &Path, on: Medium) -> Result<Layout, CacheError> {
    let layout = Layout::for_zone(wanted.size, wanted.block_bytes).ok_or(CacheError::Size(wanted.size))?;
    if on == Medium::Block {
        return Err(CacheError::Block(pool.into()));
    }
    Ok(layout)
}

/// Whether a daemon of this pool, which lies `on` that medium, could have such a cache: its size and its pool.
///
/// # Errors
/// [`CacheError`]
pub fn check(wanted: &CacheOptions, pool: &Path, on: Medium) -> Result<(), CacheError> {
    layout(wanted, pool, on).map(drop)
}

/// Whether the cache's file could be made where it is wanted, or found again there. Makes nothing that has a name; the
/// directory must exist. Who may write there is not looked at.
///
/// # Errors
/// [`CacheError`]: an ordinary file system, no room, or something else that has the name.
pub fn check_place(wanted: &CacheOptions, pool: &Path) -> Result<(), CacheError> {
    let path = wanted.at(pool);
    let there = open_any(&path).map_err(failed(&path, "opening"))?;
    let mut its_room = 0;
    if let Some(file) = &there {
        its_room = file.metadata().map_err(failed(&path, "asking for the size of"))?.blocks() * 512;
        if path != default_path(pool) && !is_zone(file) {
            return Err(CacheError::NotAZone(path));
        }
    }
    let dir = path.parent().unwrap_or(Path::new("/"));
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let probe = rustix::fs::open(dir, flags, Mode::RUSR | Mode::WUSR);
    let probe = File::from(probe.map_err(|e| failed(&path, "looking for a place for")(e.into()))?);
    probe.set_len(4096).map_err(failed(&path, "looking for a place for"))?;
    medium(&probe, &path)?;
    let fs = fstatvfs(&probe).map_err(|e| failed(&path, "asking for room for")(e.into()))?;
    match fs.f_bavail * fs.f_frsize + its_room {
        room if room < wanted.size => Err(CacheError::NoRoom { path, size: wanted.size }),
        _ => Ok(()),
    }
}

/// Removes a cache that nobody uses, with its policies; false if there is none. Anything else that has its name stays.
///
/// # Errors
/// [`CacheError`]: it is in use, or no block cache.
pub fn remove(path: &Path) -> Result<bool, CacheError> {
    let Some(file) = open_any(path).map_err(failed(path, "opening"))? else { return Ok(false) };
    if !is_zone(&file) {
        return Err(CacheError::NotAZone(path.into()));
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| CacheError::InUse { path: path.into(), pids: Vec::new() })?;
    let stat = file.metadata().map_err(failed(path, "asking for the size of"))?;
    let pids = foreign::mappers(stat.dev(), stat.ino());
    if !pids.is_empty() {
        return Err(CacheError::InUse { path: path.into(), pids });
    }
    match std::fs::remove_file(policies::beside(path)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            return Err(failed(path, "removing the policies of")(e));
        }
        _ => {}
    }
    std::fs::remove_file(path).map_err(failed(path, "removing"))?;
    Ok(true)
}

/// Whosever it is: who may set up a cache for another user is root.
fn open_any(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => Ok(Some(file.into())),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Whether it begins like a zone.
fn is_zone(mut file: &File) -> bool {
    let mut bytes = [0; size_of::<Header>()];
    file.metadata().is_ok_and(|stat| stat.is_file())
        && file.read_exact(&mut bytes).is_ok()
        && Header::read_from_bytes(&bytes).is_ok_and(|header| header.is_ours())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn wanted(path: PathBuf) -> CacheOptions {
        CacheOptions { size: 64 << 20, block_bytes: 8192, path: Some(path), is_needed: true }
    }

    fn said(checked: Result<(), CacheError>) -> String {
        checked.expect_err("refused").to_string()
    }

    #[test]
    fn a_place_is_refused_before_anything_is_made_there() {
        let (disk, ram) =
            (tempfile::tempdir_in("/var/tmp").expect("disk"), tempfile::tempdir_in("/dev/shm").expect("RAM"));
        let pool = ram.path().join("p");
        let at = |path: PathBuf| check_place(&wanted(path), &pool);
        at(ram.path().join("zone")).expect("in RAM");
        assert!(said(at(disk.path().join("zone"))).contains("ordinary file system"));
        std::fs::write(ram.path().join("mine"), "a text of mine").expect("written");
        assert!(said(at(ram.path().join("mine"))).contains("left alone"));
        let huge = CacheOptions { size: 8 << 40, ..wanted(ram.path().join("zone")) };
        assert!(said(check_place(&huge, &pool)).contains("no room"));
        assert!(said(at(ram.path().join("nowhere/zone"))).contains("looking for a place"));
        let names = |dir: &Path| std::fs::read_dir(dir).expect("readable").count();
        assert_eq!((names(disk.path()), names(ram.path())), (0, 1), "nothing was made");
    }

    #[test]
    fn a_pool_on_a_block_device_has_none_and_sizes_have_limits() {
        let path = PathBuf::from("/dev/shm/zone");
        assert!(said(check(&wanted(path.clone()), Path::new("/p"), Medium::Block)).contains("block device"));
        let small = CacheOptions { size: 1 << 20, ..wanted(path.clone()) };
        assert!(said(check(&small, Path::new("/p"), Medium::Pmem)).contains("64M to 16T"));
        check(&wanted(path), Path::new("/p"), Medium::Pmem).expect("it can");
    }

    #[test]
    fn only_a_zone_that_nobody_uses_is_removed() {
        use zerocopy::IntoBytes;
        let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let path = dir.path().join("zone");
        assert!(!remove(&path).expect("none is there"));
        std::fs::write(&path, vec![7; 8192]).expect("written");
        assert!(remove(&path).expect_err("kept").to_string().contains("no block cache"));
        let layout = Layout::for_zone(64 << 20, 8192).expect("a layout");
        std::fs::write(&path, Header::new(layout, [7; 16], false).as_bytes()).expect("written");
        let user = File::open(&path).expect("open");
        flock(&user, FlockOperation::LockExclusive).expect("locked");
        assert!(remove(&path).expect_err("kept").to_string().contains("in use"));
        drop(user);
        assert!(remove(&path).expect("removed") && !path.exists());
    }
}
