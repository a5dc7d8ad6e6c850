//! The zone's file: found again, or made anew.
//!
//! | what is there | what is done |
//! |---|---|
//! | nothing | made |
//! | a zone of that size | found again: warm |
//! | a zone of another size, version, medium or boot, or a damaged one | made anew, which the log says |
//! | something else | refused, unless the name is ours |
//! | any of these, and a process has it mapped | refused |
//!
//! One on a disk is [another matter](disk).

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock, fstatfs};
use seawall_cache::shared::{Cache, Header, Layout, OpenError, Recovered};
use seawall_core::pool::boot;
use seawall_media::{Medium, Region, magic, probe};

use super::bytes::Bytes;
use super::options::CacheOptions;
use super::resize::{Room, room_of};
use super::store::is_device;
use super::{Zone, default_path, disk};
use crate::foreign;
use crate::place::beside;
use crate::state::Daemon;

/// Why there is no cache.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum CacheError {
    #[error("a block cache has 64M to 16T, not {}: for example --cache 1G", Bytes(*.0))]
    Size(u64),
    #[error("a block cache that can grow to {} has {} at least, and not {}: its index has room for the largest size from the \
         start; give it more with --cache, or less with --cache-max", Bytes(*.most), Bytes(*.least), Bytes(*.size))]
    Few { size: u64, most: u64, least: u64 },
    #[error(
        "the pool {0} is a log on a block device, and a block cache beside it would be as slow as its disk: say where \
         it is to lie with --cache-path, on a disk that is faster than the database's (a file, or a device)"
    )]
    Block(PathBuf),
    #[error(
        "{path} would be on an ordinary file system: put the block cache on persistent memory (a DAX mount), in RAM \
         (/dev/shm), or on a disk that is faster than the database's, with --cache-path"
    )]
    NotMemory { path: PathBuf },
    #[error(
        "{path} is on a file system that reads and writes nothing past the page cache (O_DIRECT): put the block cache on \
         ext4, XFS or a device, with --cache-path"
    )]
    NotDirect { path: PathBuf },
    #[error("the device {path} cannot be a block cache: {by}")]
    UsedDevice { path: PathBuf, by: &'static str },
    #[error("the block cache {path} is memory, which is not worn by writes: leave --cache-write-budget out")]
    Budget { path: PathBuf },
    #[error("{0} is no block cache, and is left alone: remove it, or name another place with --cache-path")]
    NotAZone(PathBuf),
    #[error(fmt = in_use)]
    InUse { path: PathBuf, pids: Vec<u32> },
    #[error("there is no room for {} at {path}: ask for less, or name another place with --cache-path", Bytes(*.size))]
    NoRoom { path: PathBuf, size: u64 },
    #[error("{doing} the block cache {path}: {error}{}", hint(.error))]
    Io { path: PathBuf, doing: &'static str, error: io::Error },
}

fn in_use(path: &Path, pids: &[u32], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match pids {
        [] => write!(f, "the block cache {} is in use by another daemon", path.display()),
        pids => write!(f, "processes {pids:?} still use the block cache {}: stop them first", path.display()),
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => " (its directory must be there)",
        io::ErrorKind::IsADirectory => " (name a file in it, which is made)",
        _ => "",
    }
}

pub(super) fn failed(path: &Path, doing: &'static str) -> impl Fn(io::Error) -> CacheError {
    let path = path.to_owned();
    move |error| CacheError::Io { path: path.clone(), doing, error }
}

/// Opens or makes the zone, which nobody uses.
pub(super) fn open(daemon: &Daemon, wanted: &CacheOptions) -> Result<Zone, CacheError> {
    let layout = super::place::layout(wanted, &daemon.pool.path, daemon.pool.medium)?;
    let path = wanted.at(&daemon.pool.path);
    if super::place::is_on_disk(wanted, &path)? {
        return disk::open(daemon, wanted, path);
    }
    if let Some(file) = existing(&path)? {
        let is_our_name = path == default_path(&daemon.pool.path);
        match find_again(&file, &path, layout) {
            Ok((cache, found)) => {
                tell(daemon, &path, &found);
                let medium = medium(&file, &path)?;
                let room = Room { file: &file, path: &path, medium, most: wanted.most() };
                room.resize(&cache, wanted.ways())?;
                return zone(cache, file, path);
            }
            Err(Unusable::NotAZone) if !is_our_name => return Err(CacheError::NotAZone(path)),
            Err(Unusable::NotAZone) => daemon.log.say("the block cache is made anew: what is there is none"),
            Err(Unusable::For(why)) => daemon.log.say(format!("the block cache is made anew: {why}")),
        }
        // Its room is needed for the new one.
        std::fs::remove_file(&path).map_err(failed(&path, "removing"))?;
    }
    let (cache, file) = make(&path, wanted, layout)?;
    daemon.log.say(format!("made the block cache {}, {} bytes", path.display(), wanted.size));
    zone(cache, file, path)
}

/// Joins the zone that living clients have, if this is it.
pub(super) fn join(daemon: &Daemon, wanted: Option<&CacheOptions>, path: &Path, id: u64) -> Option<Zone> {
    if is_device(path) {
        return disk::join(daemon, wanted, path, id);
    }
    let file = open_file(path).ok().flatten()?;
    if medium(&file, path).ok()? == Medium::Block {
        drop(file);
        return disk::join(daemon, wanted, path, id);
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let len = file.metadata().ok()?.len();
    let cache = Cache::join(map(&file, path, len, medium(&file, path).ok()?).ok()?).ok()?;
    let is_it = cache.id() == id;
    is_it.then(|| zone(cache, file, path.to_owned()).ok())?
}

/// Why a zone is not found again.
enum Unusable {
    NotAZone,
    For(String),
}

fn zone(cache: Cache, file: File, path: PathBuf) -> Result<Zone, CacheError> {
    let medium = medium(&file, &path)?;
    let size = file.metadata().map_err(failed(&path, "asking for the size of"))?.len();
    Zone::new(cache, file, path, (medium, size), None)
}

pub(super) fn tell(daemon: &Daemon, path: &Path, found: &Recovered) {
    let Recovered { kept, dropped, was_cut } = found;
    let why = if *was_cut { ", as far as they are known to be on the disk" } else { "" };
    daemon
        .log
        .say(format!("found the block cache {} with {kept} blocks{why}; {dropped} dropped", path.display()));
}

/// The file at `path`, locked, and used by nobody.
fn existing(path: &Path) -> Result<Option<File>, CacheError> {
    let Some(file) = open_file(path).map_err(failed(path, "opening"))? else { return Ok(None) };
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|e| match e {
        rustix::io::Errno::WOULDBLOCK => CacheError::InUse { path: path.into(), pids: Vec::new() },
        e => failed(path, "locking")(e.into()),
    })?;
    let stat = file.metadata().map_err(failed(path, "asking for the size of"))?;
    let pids = foreign::mappers(stat.dev(), stat.ino());
    if pids.is_empty() { Ok(Some(file)) } else { Err(CacheError::InUse { path: path.into(), pids }) }
}

pub(super) fn open_file(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = OpenOptions::new().read(true).write(true).custom_flags(flags.bits() as i32).open(path);
    let file = match opened {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let stat = file.metadata()?;
    if !stat.is_file() || stat.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "it is not a file of this user"));
    }
    Ok(Some(file))
}

fn find_again(file: &File, path: &Path, layout: Layout) -> Result<(Cache, Recovered), Unusable> {
    let unusable = |e: &dyn fmt::Display| Unusable::For(e.to_string());
    let len = file.metadata().map_err(|e| unusable(&e))?.len();
    if len < Header::BYTES as u64 {
        return Err(Unusable::NotAZone);
    }
    let medium = medium(file, path).map_err(|e| unusable(&e))?;
    let region = map(file, path, len, medium).map_err(|e| unusable(&e))?;
    let joined = Cache::join(region).map_err(|e| match e {
        OpenError::NotAZone => Unusable::NotAZone,
        e => unusable(&e),
    })?;
    if joined.layout() != layout {
        return Err(Unusable::For("it is of another size, or of blocks of another size".into()));
    }
    if joined.is_durable() != (medium == Medium::Pmem) {
        return Err(Unusable::For("it was made on another medium".into()));
    }
    if joined.off().is_some() {
        return Err(Unusable::For("it was switched off".into()));
    }
    drop(joined);
    let region = map(file, path, len, medium).map_err(|e| unusable(&e))?;
    Cache::recover(region, boot()).map_err(|e| unusable(&e))
}

/// A new zone, which gets its name when it is whole.
fn make(path: &Path, wanted: &CacheOptions, layout: Layout) -> Result<(Cache, File), CacheError> {
    let temporary = beside(path, ".new");
    let made = make_at(&temporary, path, wanted, layout);
    if made.is_err() {
        // What failed is told; that this is left too would help nobody.
        let _ = std::fs::remove_file(&temporary);
    }
    made
}

fn make_at(
    temporary: &Path,
    path: &Path,
    wanted: &CacheOptions,
    layout: Layout,
) -> Result<(Cache, File), CacheError> {
    let (most, ways) = (wanted.most(), wanted.ways());
    let new =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(temporary);
    let file = new.map_err(failed(path, "making"))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|e| failed(path, "locking")(e.into()))?;
    file.set_len(most).map_err(failed(path, "making"))?;
    let medium = medium(&file, path)?;
    Room { file: &file, path, medium, most }.take(0, room_of(layout, ways, most))?;
    let region = map(&file, path, most, medium)?;
    let uuid = uuid().map_err(failed(path, "drawing a UUID for"))?;
    let cache = Cache::create(region, layout, uuid, boot(), medium == Medium::Pmem);
    let cache = cache.map_err(|e| failed(path, "making")(io::Error::other(e)))?;
    cache.resize(ways);
    std::fs::rename(temporary, path).map_err(failed(path, "naming"))?;
    Ok((cache, file))
}

pub(super) fn uuid() -> io::Result<[u8; 16]> {
    use std::io::Read;
    let mut uuid = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut uuid)?;
    Ok(uuid)
}

/// Persistent memory, or RAM that is named as such: a file of an ordinary file system is neither, but on a disk.
pub(super) fn medium(file: &File, path: &Path) -> Result<Medium, CacheError> {
    let probed = probe(file).map_err(|e| failed(path, "probing")(io::Error::other(e)))?;
    let is_ram = || fstatfs(file).is_ok_and(|fs| fs.f_type as u64 == magic::TMPFS);
    if probed.medium == Medium::Pmem || is_ram() {
        return Ok(probed.medium);
    }
    Ok(Medium::Block)
}

pub(super) fn map(file: &File, path: &Path, len: u64, medium: Medium) -> Result<Region, CacheError> {
    Region::map(file, len, medium == Medium::Pmem)
        .map_err(|e| failed(path, "mapping")(io::Error::other(format!("{e:?}"))))
}
