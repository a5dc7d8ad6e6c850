//! The image of a journal's pool: a file in memory under the pool's UUID, with the desk behind it.
//!
//! | image of this boot | its desk | what is done |
//! |---|---|---|
//! | found | in use | it is taken as it is: it is newer than the journal |
//! | found | its device failed, nobody else has it mapped | the journal is read again, and its writing goes on behind what is there |
//! | found | its device failed, others have it mapped | refused: they must end first |
//! | found | given up | another one is made |
//! | none | – | made from the journal, unless a process has one mapped that was removed |

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Release, SeqCst};

use rustix::fs::MemfdFlags;
use seawall_media::block::{Anchor, Recovered};
use seawall_media::{Region, durable};
use seawall_wire::desk::Desk;

use super::super::backing::Fresh;
use super::super::error::PoolError;
use super::super::machine::boot;
use super::super::mappings::{mapped_by_others, open_own, users_of_memory};
use super::super::steps::{io as failing, map_error};
use super::kinds::Image;
use crate::format::{Layout, Superblock};
use crate::journal::{GIVEN_UP, bury_dead, open};

/// Bytes of segments for which a start takes memory: enough for the lanes of a database that starts.
const FIRST: usize = 64 << 20;

/// The path of a pool's image.
pub fn path_of(memory: &Path, uuid: [u8; 16]) -> PathBuf {
    memory.join(format!("seawall-{:032x}.image", u128::from_le_bytes(uuid)))
}

/// An open journal, and what its anchor says.
pub(in crate::pool) struct Source<'a> {
    pub file: &'a File,
    pub path: &'a Path,
    pub anchor: Anchor,
    pub bytes: u64,
}

impl<'a> Source<'a> {
    /// # Errors
    /// If it is not a journal.
    pub fn of(file: &'a File, path: &'a Path) -> Result<Self, PoolError> {
        let anchor =
            open::anchor_of(file).map_err(|error| PoolError::Journal { path: path.into(), error })?;
        let layout = Layout::for_size(anchor.image)
            .ok_or_else(|| PoolError::Size { path: path.into(), size: anchor.image })?;
        Ok(Self { file, path, anchor, bytes: open::memory_bytes(anchor.image, layout) })
    }

    fn desk<'r>(&self, region: &'r Region) -> Desk<'r> {
        Desk::new(region, self.anchor.image as usize)
    }

    /// Reads it into an image of zeros, where `apply` stores bytes at an offset.
    pub fn load_with(
        &self,
        region: &Region,
        apply: impl FnMut(usize, &[u8]),
    ) -> Result<Recovered, PoolError> {
        let loaded = open::load(self.file, self.desk(region), apply);
        loaded.map_err(|error| PoolError::Journal { path: self.path.into(), error })
    }

    fn load(&self, region: &Region) -> Result<Recovered, PoolError> {
        self.load_with(region, |at, bytes| region.copy_in(at, bytes))
    }

    /// The image for a process that may write.
    pub fn image(&self, memory: &Path) -> Result<(File, Image), PoolError> {
        let path = path_of(memory, self.anchor.uuid);
        if let Some((file, read)) = self.existing(&path)? {
            return Ok((file, Image { path, made: false, read }));
        }
        let (file, read) = self.make(&path)?;
        Ok((file, Image { path, made: true, read: Some(read) }))
    }

    /// The image, if this boot used it with this journal.
    fn existing(&self, at: &Path) -> Result<Option<(File, Option<Recovered>)>, PoolError> {
        let failed = failing(at, "open the image");
        let Some((file, region)) = of_this_boot(at, self.bytes, self.anchor.uuid)? else { return Ok(None) };
        let desk = self.desk(&region);
        match desk.failed().load(SeqCst) {
            GIVEN_UP => Ok(None),
            _ if !open::is_of(desk, &self.anchor) => Err(failed(io::Error::other(
                "it was used with another copy of this log, and holds records that this copy lacks: put the \
                 other copy back",
            ))),
            0 => {
                // This comes first, before a thread waits for a dead one whose process nobody has reaped.
                bury_dead(desk);
                Ok(Some((file, None)))
            }
            error => self.revive(&file, desk, error).map(|found| Some((file, Some(found)))),
        }
    }

    /// The copies of a mirrored log that are written by the users of its image, if the image is there; a bit each.
    /// `None`: the log is all there is, or writing from the image failed.
    pub fn copies_in_use(&self, memory: &Path) -> Result<Option<u32>, PoolError> {
        let at = path_of(memory, self.anchor.uuid);
        let Some((_, region)) = of_this_boot(&at, self.bytes, self.anchor.uuid)? else { return Ok(None) };
        let desk = self.desk(&region);
        Ok((desk.failed().load(SeqCst) == 0).then(|| desk.copies().load(SeqCst)))
    }

    /// The device failed, and the image holds records that the journal lacks. Their files still have the data, and are
    /// synced next; so all that is needed is a journal that takes writes again, with everything that it had confirmed.
    fn revive(&self, image: &File, desk: Desk<'_>, error: u32) -> Result<Recovered, PoolError> {
        let users = mapped_by_others(image).map_err(failing(self.path, "find out which processes use"))?;
        if !users.is_empty() {
            let error = io::Error::from_raw_os_error(error as i32);
            return Err(PoolError::DeviceFailed { path: self.path.into(), error, users });
        }
        let found = open::revive(self.file, desk);
        found.map_err(|error| PoolError::DeviceDead { path: self.path.into(), error })
    }

    /// Makes the image from the journal.
    fn make(&self, at: &Path) -> Result<(File, Recovered), PoolError> {
        let layout = Layout::for_size(self.anchor.image)
            .ok_or_else(|| PoolError::Size { path: self.path.into(), size: self.anchor.image })?;
        let (file, _, found) = make(at, self.path, self.bytes, |fresh| self.fill(fresh, layout))?;
        Ok((file, found))
    }

    /// Reads the journal into a new image, with memory for the live part and for the needs of a start.
    fn fill(&self, fresh: &Fresh<'_>, layout: Layout) -> Result<Recovered, PoolError> {
        let desk_at = self.anchor.image as usize;
        fresh.back(desk_at, self.bytes as usize)?;
        let segments_to = |end: usize| {
            let segments = end.saturating_sub(layout.segments_at()).div_ceil(layout.segment_bytes as usize);
            (segments as u32).min(layout.segments)
        };
        let mut backed = segments_to(layout.segments_at() + FIRST);
        let mut done = fresh.back(0, layout.segment(backed));
        let found = self.load_with(&fresh.region, |at, bytes| {
            let needed = segments_to(at + bytes.len());
            if done.is_ok() && needed > backed {
                done = fresh.back(layout.segment(backed), layout.segment(needed));
                backed = needed;
            }
            if done.is_ok() {
                fresh.region.copy_in(at, bytes);
            }
        })?;
        done?;
        self.desk(&fresh.region).unbacked().store(layout.segments - backed, Release);
        Ok(found)
    }

    /// The image for a process that only reads, and never makes one.
    pub fn view(&self, memory: &Path) -> Result<Region, PoolError> {
        let at = path_of(memory, self.anchor.uuid);
        let owner =
            self.file.metadata().map(|meta| meta.uid()).map_err(failing(self.path, "read the owner of"))?;
        let of = (self.bytes, self.anchor.uuid, self.anchor.image as usize);
        view((&at, self.path), of, owner, |region| self.load(region).map(drop)).map(|(_, region)| region)
    }
}

/// The image at `at`, of this many bytes, if this boot used it for this pool: for a process that may write.
///
/// # Errors
/// [`PoolError`]: it belongs to another user, for example.
pub(in crate::pool) fn of_this_boot(
    at: &Path,
    bytes: u64,
    uuid: [u8; 16],
) -> Result<Option<(File, Region)>, PoolError> {
    let found = open_own(at).map_err(failing(at, "open the image"))?;
    let Some((file, _)) = found.filter(|(_, len)| *len == bytes) else { return Ok(None) };
    let region = Region::map(&file, bytes, false).map_err(|e| map_error(at, e))?;
    Ok(is_of_this_boot(&region, uuid).then_some((file, region)))
}

fn is_of_this_boot(region: &Region, uuid: [u8; 16]) -> bool {
    Superblock::read(region).is_ok_and(|sb| sb.boot == boot() && sb.uuid == uuid)
}

/// Makes an image at `at` of this many bytes, for the pool at `path`. `fill` takes memory, and writes to zeros. A
/// process that finds the image under its name finds it complete.
///
/// # Errors
/// [`PoolError`]; the error of `fill`.
pub(in crate::pool) fn make<T, E: From<PoolError>>(
    at: &Path,
    path: &Path,
    bytes: u64,
    fill: impl FnOnce(&Fresh<'_>) -> Result<T, E>,
) -> Result<(File, Region, T), E> {
    let pids = users_of_memory(at).map_err(failing(at, "find out which processes use"))?;
    if !pids.is_empty() {
        return Err(PoolError::Orphans { path: path.into(), pids }.into());
    }
    // It has a name from the start: by that name it is found in the mappings of processes, even after it was removed.
    let temporary = at.with_extension("new");
    remove(&temporary)?;
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(&temporary).map_err(failing(&temporary, "create"))?;
    let filled = Fresh::of(&file, &temporary, bytes).map_err(E::from).and_then(|fresh| {
        let filled = fill(&fresh)?;
        std::fs::rename(&temporary, at).map_err(failing(at, "create"))?;
        Ok((fresh.region, filled))
    });
    if filled.is_err() {
        remove(&temporary)?;
    }
    filled.map(|(region, filled)| (file, region, filled))
}

/// The image at `at` for a process that only reads: it must belong to root, or to the pool's `owner`. Otherwise `fill`
/// writes to zeros in memory of its own. The image belongs to the pool at `path`, which has this many bytes, and its
/// desk is at that offset.
///
/// # Errors
/// [`PoolError`]; the error of `fill`.
pub(in crate::pool) fn view<E: From<PoolError>>(
    (at, path): (&Path, &Path),
    (bytes, uuid, desk_at): (u64, [u8; 16], usize),
    owner: u32,
    fill: impl FnOnce(&Region) -> Result<(), E>,
) -> Result<(File, Region), E> {
    if let Ok(file) = File::open(at)
        && file.metadata().is_ok_and(|meta| meta.len() == bytes && [0, owner].contains(&meta.uid()))
        && let Ok(region) = Region::map_read_only(&file, bytes)
        && is_of_this_boot(&region, uuid)
        && Desk::new(&region, desk_at).failed().load(SeqCst) != GIVEN_UP
    {
        return Ok((file, region));
    }
    let file = nameless(bytes).map_err(failing(path, "make an image of"))?;
    let region = Region::map(&file, bytes, false).map_err(|e| map_error(at, e))?;
    fill(&region)?;
    Ok((file, region))
}

/// Removes the image of a journal that is about to be replaced.
///
/// # Errors
/// If a process uses it.
pub(super) fn give_up(journal: &File, path: &Path, memory: &Path) -> Result<(), PoolError> {
    let Ok(anchor) = open::anchor_of(journal) else { return Ok(()) };
    let at = path_of(memory, anchor.uuid);
    let users = users_of_memory(&at).map_err(failing(&at, "find out which processes use"))?;
    if users.is_empty() { remove(&at) } else { Err(PoolError::InUse(path.into())) }
}

fn remove(at: &Path) -> Result<(), PoolError> {
    durable::remove(at).map(drop).map_err(failing(at, "remove"))
}

/// Memory without a name.
pub(crate) fn nameless(bytes: u64) -> io::Result<File> {
    let file = File::from(rustix::fs::memfd_create("seawall-image", MemfdFlags::CLOEXEC)?);
    file.set_len(bytes)?;
    Ok(file)
}
