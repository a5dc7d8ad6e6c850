//! A zone in memory: found again, or made anew.
//!
//! | what is there | what is done |
//! |---|---|
//! | nothing | made |
//! | a zone of that size | found again: warm |
//! | a zone of another size, version, medium or boot, or a damaged one | made anew, which the log says |
//! | something else | refused, unless the name is ours |
//! | any of these, and a process has it mapped | refused |
//!
//! One on a disk is [another matter](super::on_disk).

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use seawall_cache::shared::{Cache, Header, Layout, OpenError, Recovered};
use seawall_core::pool::boot;
use seawall_media::{Medium, random_uuid};

use super::error::{CacheError, failed};
use super::file::{map, medium, open_file, tell};
use super::options::{CacheOptions, default_path};
use super::room::{Room, room_of};
use super::zone::Zone;
use crate::foreign;
use crate::log::Log;
use crate::place::beside;

/// Opens or makes the zone at this path, which nobody uses.
pub(super) fn open(
    wanted: &CacheOptions,
    layout: Layout,
    path: PathBuf,
    pool: &Path,
    log: &Log,
) -> Result<Zone, CacheError> {
    if let Some(file) = existing(&path)? {
        let is_our_name = path == default_path(pool);
        match find_again(&file, &path, layout) {
            Ok((cache, found)) => {
                tell(log, &path, &found);
                let medium = medium(&file, &path)?;
                let room = Room { file: &file, path: &path, medium, most: wanted.most() };
                room.resize(&cache, wanted.ways())?;
                return zone(cache, file, path);
            }
            Err(Unusable::NotAZone) if !is_our_name => return Err(CacheError::NotAZone(path)),
            Err(Unusable::NotAZone) => {
                log.say("the block cache is made anew: the file in its place is not one")
            }
            Err(Unusable::For(why)) => log.say(format!("the block cache is made anew: {why}")),
        }
        // Its room is needed for the new one.
        std::fs::remove_file(&path).map_err(failed(&path, "remove"))?;
    }
    let (cache, file) = make(&path, wanted, layout)?;
    log.say(format!("made the block cache {}, {} bytes", path.display(), wanted.size));
    zone(cache, file, path)
}

/// Joins the zone that living clients have, if this is it.
pub(super) fn join(file: File, path: &Path, id: u64) -> Option<Zone> {
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
    let size = file.metadata().map_err(failed(&path, "read the size of"))?.len();
    Zone::new(cache, file, path, (medium, size), None)
}

/// The file at `path`, locked, and used by nobody.
fn existing(path: &Path) -> Result<Option<File>, CacheError> {
    let Some(file) = open_file(path).map_err(failed(path, "open"))? else { return Ok(None) };
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|e| match e {
        rustix::io::Errno::WOULDBLOCK => CacheError::InUse { path: path.into(), pids: Vec::new() },
        e => failed(path, "lock")(e.into()),
    })?;
    let stat = file.metadata().map_err(failed(path, "read the size of"))?;
    let pids = foreign::mappers(stat.dev(), stat.ino());
    if pids.is_empty() { Ok(Some(file)) } else { Err(CacheError::InUse { path: path.into(), pids }) }
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
        return Err(Unusable::For("it has another size, or blocks of another size".into()));
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
        // The caller gets that error; to hear that this file is left too would help nobody.
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
    let file = new.map_err(failed(path, "make"))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|e| failed(path, "lock")(e.into()))?;
    file.set_len(most).map_err(failed(path, "make"))?;
    let medium = medium(&file, path)?;
    Room { file: &file, path, medium, most }.take(0, room_of(layout, ways, most))?;
    let region = map(&file, path, most, medium)?;
    let uuid = random_uuid().map_err(failed(path, "generate a UUID for"))?;
    let cache = Cache::create(region, layout, uuid, boot(), medium == Medium::Pmem);
    let cache = cache.map_err(|e| failed(path, "make")(io::Error::other(e)))?;
    cache.resize(ways);
    std::fs::rename(temporary, path).map_err(failed(path, "create"))?;
    Ok((cache, file))
}
