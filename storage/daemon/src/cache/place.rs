//! A cache's place before there is a cache, for whoever sets one up: what a daemon's start would refuse. And its end.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use seawall_cache::shared::{Header, Layout, StoreHeader};
use seawall_media::{Medium, durable};
use zerocopy::{FromBytes, IntoBytes};

use super::error::{CacheError, failed};
use super::file::medium;
use super::options::{CacheOptions, default_path};
use super::store::is_device;
use super::{on_disk, policies};
use crate::foreign;

/// Whether a pool on this medium can have such a cache: the zone's layout.
///
/// # Errors
/// [`CacheError`]: no size of a cache, or a log on a block device.
pub(super) fn layout(wanted: &CacheOptions, pool: &Path, on: Medium) -> Result<Layout, CacheError> {
    let layout = wanted.checked(Layout::for_zone(wanted.most(), wanted.block_bytes))?;
    if on == Medium::Block && wanted.path.is_none() {
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

/// Whether such a cache would lie on a disk, at this path: a device, or on an ordinary file system. Only by name: what the
/// pool happens to lie on is no disk that anybody chose.
///
/// # Errors
/// [`CacheError`]: an ordinary file system beside the pool, or a budget for memory.
pub(super) fn is_on_disk(wanted: &CacheOptions, path: &Path) -> Result<bool, CacheError> {
    let on = if is_device(path) { Medium::Block } else { medium_of(path)? };
    match (on, &wanted.path, wanted.write_budget) {
        (Medium::Block, None, _) => Err(CacheError::NotMemory { path: path.into() }),
        (Medium::Block, Some(_), _) => Ok(true),
        (_, _, Some(_)) => Err(CacheError::Budget { path: path.into() }),
        _ => Ok(false),
    }
}

/// What a file at this path lies on, or would. Makes nothing that has a name.
fn medium_of(path: &Path) -> Result<Medium, CacheError> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let probe = rustix::fs::open(dir, flags, Mode::RUSR | Mode::WUSR);
    let probe = File::from(probe.map_err(|e| failed(path, "find a place for")(e.into()))?);
    probe.set_len(4096).map_err(failed(path, "find a place for"))?;
    medium(&probe, path)
}

/// Whether the cache's file could be made where it is wanted, or found again there. Makes nothing that has a name; the
/// directory must exist. Does not look who may write there.
///
/// # Errors
/// [`CacheError`]: an ordinary file system, no room, or something else that has the name.
pub fn check_place(wanted: &CacheOptions, pool: &Path) -> Result<(), CacheError> {
    let path = wanted.at(pool);
    let is_on_disk = is_on_disk(wanted, &path)?;
    if is_device(&path) {
        return Ok(());
    }
    let there = open_any(&path).map_err(failed(&path, "open"))?;
    let mut its_room = 0;
    if let Some(file) = &there {
        its_room = file.metadata().map_err(failed(&path, "read the size of"))?.blocks() * 512;
        let is_cache = if is_on_disk { is_store(file) } else { is_zone(file) };
        if path != default_path(pool) && !is_cache {
            return Err(CacheError::NotAZone(path));
        }
    }
    let dir = path.parent().unwrap_or(Path::new("/"));
    let fs = rustix::fs::statvfs(dir)
        .map_err(|e| failed(&path, "find out how much space there is for")(e.into()))?;
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
    let Some(file) = open_any(path).map_err(failed(path, "open"))? else { return Ok(false) };
    if is_device(path) || is_store(&file) {
        drop(file);
        let is_removed = on_disk::remove(path)?;
        remove_policies(path)?;
        return Ok(is_removed);
    }
    if !is_zone(&file) {
        return Err(CacheError::NotAZone(path.into()));
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| CacheError::InUse { path: path.into(), pids: Vec::new() })?;
    let stat = file.metadata().map_err(failed(path, "read the size of"))?;
    let pids = foreign::mappers(stat.dev(), stat.ino());
    if !pids.is_empty() {
        return Err(CacheError::InUse { path: path.into(), pids });
    }
    remove_policies(path)?;
    std::fs::remove_file(path).map_err(failed(path, "remove"))?;
    Ok(true)
}

fn remove_policies(path: &Path) -> Result<(), CacheError> {
    durable::remove(&policies::beside(path)).map(drop).map_err(failed(path, "remove the policies of"))
}

/// Opens it, whosever it is: only root may set up a cache for another user.
fn open_any(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => Ok(Some(file.into())),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Whether it begins like a zone.
fn is_zone(file: &File) -> bool {
    begins::<Header>(file).is_some_and(|header| header.is_ours())
}

/// Whether it begins like what a cache has on a disk.
fn is_store(file: &File) -> bool {
    begins::<StoreHeader>(file).is_some_and(|header| header.is_ours())
}

fn begins<H: FromBytes + IntoBytes>(file: &File) -> Option<H> {
    let mut header = H::new_zeroed();
    file.metadata().ok().filter(|stat| stat.is_file())?;
    file.read_exact_at(header.as_mut_bytes(), 0).ok()?;
    Some(header)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn wanted(path: PathBuf) -> CacheOptions {
        CacheOptions { path: Some(path), ..CacheOptions::of_size(64 << 20) }
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
        at(disk.path().join("zone")).expect("on a disk, by name");
        let beside = check_place(&CacheOptions::of_size(64 << 20), &disk.path().join("p"));
        assert!(said(beside).contains("ordinary file system"));
        let worn = CacheOptions { write_budget: Some(1 << 30), ..wanted(ram.path().join("zone")) };
        assert!(said(check_place(&worn, &pool)).contains("--cache-write-budget"));
        std::fs::write(ram.path().join("mine"), "a text of mine").expect("written");
        assert!(said(at(ram.path().join("mine"))).contains("left alone"));
        let huge = CacheOptions { size: 8 << 40, ..wanted(ram.path().join("zone")) };
        assert!(said(check_place(&huge, &pool)).contains("no room"));
        assert!(said(at(ram.path().join("nowhere/zone"))).contains("cannot find a place"));
        let names = |dir: &Path| std::fs::read_dir(dir).expect("readable").count();
        assert_eq!((names(disk.path()), names(ram.path())), (0, 1), "nothing was made");
    }

    #[test]
    fn a_pool_on_a_block_device_has_none_and_sizes_have_limits() {
        let path = PathBuf::from("/dev/shm/zone");
        let beside = CacheOptions::of_size(64 << 20);
        assert!(said(check(&beside, Path::new("/p"), Medium::Block)).contains("--cache-path"));
        check(&wanted(path.clone()), Path::new("/p"), Medium::Block).expect("it can, elsewhere");
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
        assert!(remove(&path).expect_err("kept").to_string().contains("not a block cache"));
        let layout = Layout::for_zone(64 << 20, 8192).expect("a layout");
        std::fs::write(&path, Header::new(layout, [7; 16], false).as_bytes()).expect("written");
        let user = File::open(&path).expect("open");
        flock(&user, FlockOperation::LockExclusive).expect("locked");
        assert!(remove(&path).expect_err("kept").to_string().contains("in use"));
        drop(user);
        assert!(remove(&path).expect("removed") && !path.exists());
    }
}
