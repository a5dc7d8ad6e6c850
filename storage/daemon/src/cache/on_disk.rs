//! A cache whose blocks lie on a disk: its [store](super::store) there, its index in memory.
//!
//! | index in memory | saved index | what is done |
//! |---|---|---|
//! | there | – | found again: daemon or processes were killed, the machine goes on |
//! | none | there | brought back: the cache was closed |
//! | none | none | made anew: the machine stopped without a word, and of no block it is known whether it was written since |
//!
//! The index is not kept on the disk meanwhile, nor mapped from there: what a hit stores to it would be written back by
//! the kernel all the time, and a hit wait for that. And nothing of it could be believed after a power cut, for a write
//! takes a block out of the index in memory and waits for no disk.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};
use seawall_cache::shared::{Cache, Layout, Recovered, StoreHeader};
use seawall_core::pool::boot;
use seawall_media::{Medium, Region, random_uuid};

use super::budget::Budget;
use super::disk::Disk;
use super::error::{CacheError, failed};
use super::file::{map, open_file, tell};
use super::options::{CacheOptions, default_path};
use super::room::{Room, room_of};
use super::store::{Store, is_device};
use super::zone::Zone;
use crate::foreign;
use crate::log::Log;
use crate::place::beside;

/// Where indexes are.
const MEMORY: &str = "/dev/shm";

/// Why a cache is not found again.
enum NotFound {
    InUse(CacheError),
    For(String),
}

/// An index that is mapped by this process.
struct Index {
    file: File,
    path: PathBuf,
}

/// Opens or makes the cache, which nobody uses.
pub(super) fn open(wanted: &CacheOptions, path: PathBuf, pool: &Path, log: &Log) -> Result<Zone, CacheError> {
    let layout = wanted.checked(Layout::for_disk(wanted.most(), wanted.block_bytes))?;
    if let Some(store) = Store::open(&path)? {
        if let Some(header) = store.header().map_err(failed(&path, "read"))? {
            match find_again(&store, header, wanted, layout) {
                Ok((cache, index, found)) => {
                    tell(log, &path, &found);
                    return Found { cache, index, store, header }.zone(wanted, path, pool);
                }
                Err(NotFound::InUse(error)) => return Err(error),
                Err(NotFound::For(why)) => log.say(format!("the block cache is made anew: {why}")),
            }
            // Whatever is wrong with it: it is this cache's, and nobody uses it.
            Index::remove(header.uuid);
        } else if !store.is_blank().map_err(failed(&path, "read"))? {
            if path != default_path(pool) {
                return Err(CacheError::NotAZone(path));
            }
            log.say("the block cache is made anew: the file in its place is not one");
        }
        if !is_device(&path) {
            // Its room is needed for the new one.
            std::fs::remove_file(&path).map_err(failed(&path, "remove"))?;
        }
    }
    let made = make(wanted, layout, path, pool)?;
    log.say(format!("made the block cache {}, {} bytes", made.path.display(), wanted.size));
    Ok(made)
}

/// Joins the cache that living clients have, if this is it.
pub(super) fn join(wanted: Option<&CacheOptions>, path: &Path, id: u64, pool: &Path) -> Option<Zone> {
    let store = Store::open(path).ok().flatten()?;
    let header = store.header().ok().flatten().filter(StoreHeader::is_whole)?;
    let index = Index::find(header.uuid)?;
    let cache = Cache::join(index.map(path).ok()?).ok()?;
    let is_it = cache.id() == id && cache.layout().is_on_disk();
    let same = CacheOptions::of_size(header.bytes);
    let found = Found { cache, index, store, header };
    is_it.then(|| found.zone(wanted.unwrap_or(&same), path.to_owned(), pool).ok())?
}

/// The cache that this store says it is, whose index is in memory, or is brought back.
fn find_again(
    store: &Store,
    header: StoreHeader,
    wanted: &CacheOptions,
    layout: Layout,
) -> Result<(Cache, Index, Recovered), NotFound> {
    let found = Index::find(header.uuid);
    if let Some(index) = &found {
        let stat = index.file.metadata().map_err(because)?;
        let pids = foreign::mappers(stat.dev(), stat.ino());
        if !pids.is_empty() {
            return Err(NotFound::InUse(CacheError::InUse { path: index.path.clone(), pids }));
        }
    }
    if !header.is_whole() {
        return Err(because("it is of another version, or damaged"));
    }
    if header.bytes != wanted.most() {
        return Err(because("it has another size"));
    }
    let index = found.map_or_else(|| bring_back(store, header, layout), Ok)?;
    let region = || index.map(&index.path).map_err(because);
    let joined = Cache::join(region()?).map_err(because)?;
    if joined.layout() != layout || joined.uuid() != header.uuid {
        return Err(because("its index is for blocks of another size"));
    }
    if joined.off().is_some() {
        return Err(because("it was switched off"));
    }
    // From now on the saved index grows old.
    store.set_header(&header.saved(false)).map_err(because)?;
    let (cache, found) = Cache::recover(region()?, boot()).map_err(because)?;
    let room = Room { file: store.file(), path: &index.path, medium: Medium::Block, most: header.bytes };
    room.resize(&cache, wanted.ways()).map_err(because)?;
    let index = index.named().map_err(because)?;
    Ok((cache, index, found))
}

/// An index in memory, made from the saved one.
fn bring_back(store: &Store, header: StoreHeader, layout: Layout) -> Result<Index, NotFound> {
    if header.is_saved == 0 {
        return Err(because("the machine stopped while it was in use, or its index in memory was removed"));
    }
    let index = Index::make(header.uuid, layout).map_err(because)?;
    let region = index.map(&index.path).map_err(because)?;
    store.load(layout, &region).map_err(because)?;
    Ok(index)
}

fn because(why: impl Display) -> NotFound {
    NotFound::For(why.to_string())
}

/// A new cache, which gets its name when it is whole. A device has one.
fn make(wanted: &CacheOptions, layout: Layout, path: PathBuf, pool: &Path) -> Result<Zone, CacheError> {
    if is_device(&path) {
        let store = Store::open(&path)?.ok_or_else(|| CacheError::NotAZone(path.clone()))?;
        return make_in(store, wanted, layout, &path)?.zone(wanted, path, pool);
    }
    let temporary = beside(&path, ".new");
    let made = Store::create(&temporary).and_then(|store| make_in(store, wanted, layout, &path));
    let named = made.and_then(|found| {
        std::fs::rename(&temporary, &path).map_err(failed(&path, "create"))?;
        found.zone(wanted, path, pool)
    });
    if named.is_err() {
        // The caller gets that error; to hear that this file is left too would help nobody.
        let _ = std::fs::remove_file(&temporary);
    }
    named
}

fn make_in(store: Store, wanted: &CacheOptions, layout: Layout, path: &Path) -> Result<Found, CacheError> {
    let (most, ways) = (wanted.most(), wanted.ways());
    store.lengthen(path, most)?;
    let room = Room { file: store.file(), path, medium: Medium::Block, most };
    room.take(0, room_of(layout, ways, most))?;
    let uuid = random_uuid().map_err(failed(path, "generate a UUID for"))?;
    let header = StoreHeader::new(uuid, most);
    store.set_header(&header).map_err(failed(path, "write"))?;
    let index = || {
        let index = Index::make(uuid, layout).map_err(failed(path, "reserve memory for the index of"))?;
        let cache = Cache::create(index.map(path)?, layout, uuid, boot(), false);
        let cache = cache.map_err(|e| failed(path, "make")(io::Error::other(e)))?;
        cache.resize(ways);
        Ok((cache, index.named().map_err(failed(path, "create the index of"))?))
    };
    let (cache, index) = index().inspect_err(|_| Index::remove(uuid))?;
    Ok(Found { cache, index, store, header })
}

/// A cache that is whole.
struct Found {
    cache: Cache,
    index: Index,
    store: Store,
    header: StoreHeader,
}

impl Found {
    fn zone(self, wanted: &CacheOptions, path: PathBuf, pool: &Path) -> Result<Zone, CacheError> {
        let Self { cache, index, store, header } = self;
        let budget = wanted.write_budget.map(Budget::per_day);
        cache.set_spent(false);
        // Beside a device there is no place for anything.
        let beside = if is_device(&path) { default_path(pool) } else { path.clone() };
        let disk = Disk::new(store, header, index.path, beside, budget);
        Zone::new(cache, index.file, path, (Medium::Block, header.bytes), Some(disk))
    }
}

impl Index {
    /// The index in memory of the cache with this UUID.
    fn find(uuid: [u8; 16]) -> Option<Self> {
        let path = index_of(uuid);
        let file = open_file(&path).ok().flatten()?;
        Some(Self { file, path })
    }

    /// Makes one, of zeros, under another name.
    fn make(uuid: [u8; 16], layout: Layout) -> io::Result<Self> {
        let path = beside(&index_of(uuid), ".new");
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        let len = layout.total_bytes().ok_or_else(|| io::Error::other("no zone has this layout"))?;
        // A full memory must not become a SIGBUS in a database.
        if let Err(e) = fallocate(&file, FallocateFlags::empty(), 0, len as u64) {
            let _ = std::fs::remove_file(&path);
            return Err(e.into());
        }
        Ok(Self { file, path })
    }

    /// Removes that of a cache which nobody uses, also one that was never whole.
    fn remove(uuid: [u8; 16]) {
        let path = index_of(uuid);
        for path in [beside(&path, ".new"), path] {
            // Most often there is none.
            let _ = std::fs::remove_file(path);
        }
    }

    /// It is whole, and has its name.
    fn named(self) -> io::Result<Self> {
        if self.path.extension().is_none() {
            return Ok(self);
        }
        let path = self.path.with_extension("");
        std::fs::rename(&self.path, &path)?;
        Ok(Self { path, ..self })
    }

    fn map(&self, path: &Path) -> Result<Region, CacheError> {
        let len = self.file.metadata().map_err(failed(path, "read the size of"))?.len();
        map(&self.file, path, len, Medium::Block)
    }
}

fn index_of(uuid: [u8; 16]) -> PathBuf {
    Path::new(MEMORY).join(format!("seawall-cache-{:032x}", u128::from_le_bytes(uuid)))
}

/// Removes the cache at this path, which nobody uses, if there is one: its file, or what a device says of it.
pub(super) fn remove(path: &Path) -> Result<bool, CacheError> {
    let Some(store) = Store::open(path)? else { return Ok(false) };
    let header = store.header().map_err(failed(path, "read"))?;
    let header = header.ok_or_else(|| CacheError::NotAZone(path.into()))?;
    if let Some(index) = Index::find(header.uuid) {
        let stat = index.file.metadata().map_err(failed(path, "read the size of"))?;
        let pids = foreign::mappers(stat.dev(), stat.ino());
        if !pids.is_empty() {
            return Err(CacheError::InUse { path: path.into(), pids });
        }
        std::fs::remove_file(&index.path).map_err(failed(path, "remove the index of"))?;
    }
    match is_device(path) {
        true => store.wipe().map_err(failed(path, "wipe"))?,
        false => std::fs::remove_file(path).map_err(failed(path, "remove"))?,
    }
    Ok(true)
}
