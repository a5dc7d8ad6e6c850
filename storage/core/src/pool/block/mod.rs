//! A pool on a block device: a journal there, an image of the pool in memory.
//!
//! Input: the journal's path. Output: a pool like any other, whose changes the journal makes durable. The image lies in
//! a memory file system under the pool's UUID. In the boot that used it, the image is newer than the journal (a process
//! can read what another one wrote without any sync), so it is taken as it is; otherwise it is made from the journal.

pub(in crate::pool) mod device;
pub(in crate::pool) mod image;
pub(in crate::pool) mod kinds;
mod label;
pub(in crate::pool) mod make;
pub mod mirror;
mod replace;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;

use rustix::fs::OFlags;
use seawall_media::block::{JournalError, Recovered, probe_block};
use seawall_media::{Medium, Region};
use seawall_wire::desk::Desk;

use super::error::PoolError;
use super::file::directory;
use super::machine::{MEMORY, host};
use super::opened::Pool;
use super::steps::{io as failing, map, opening};
use crate::format::{Layout, Superblock};
use crate::journal::{Journal, open as journal_open};
use crate::store::Store;

use device::{device, file_flags, open_locked};
pub use device::{is_device, is_journal};
use image::Source;
pub(crate) use image::nameless;
pub use kinds::{Image, Sizes};
pub use make::{create, create_file};
use mirror::{Mirrored, Pair};
pub use replace::Replacement;

/// Bytes of memory that an image of this size takes. `None`: no pool has that size.
pub fn memory_for(image: u64) -> Option<u64> {
    Layout::for_size(image).map(|layout| journal_open::memory_bytes(image, layout))
}

/// Opens the pool of a journal for writing and locks it.
///
/// # Errors
/// [`PoolError`].
pub fn open(path: &Path) -> Result<Pool, PoolError> {
    make::check_medium(path)?;
    open_in(path, Path::new(MEMORY))
}

/// [`open`], whatever the journal lies on. `memory` is where its image is or will be made.
///
/// # Errors
/// [`PoolError`].
pub fn open_in(path: &Path, memory: &Path) -> Result<Pool, PoolError> {
    let mut file = open_locked(path)?;
    let mut source = Source::of(&file, path)?;
    let mut pair = Pair::of(&file, path, source.anchor)?;
    let mut at = path.to_owned();
    if let Some(pair) = &mut pair {
        // It may be another copy than the one at this path.
        (file, at) = (pair.this.file.try_clone().map_err(failing(path, "open"))?, pair.this.path.clone());
        source = Source::of(&file, &at)?;
        match source.copies_in_use(memory)? {
            Some(copies) => source.anchor = pair.written(copies)?,
            None => {
                pair.settle()?;
                source = Source::of(&file, &at)?;
            }
        }
    }
    let (file_of_image, image) = source.image(memory)?;
    let (desk_at, bytes) = (source.anchor.image as usize, source.bytes);
    let region = map(&file_of_image, path, bytes, Medium::Block)?;
    let superblock = superblock(&region, path)?;
    if superblock.host != host() {
        return Err(PoolError::OtherHost { path: path.into() });
    }
    let (device, direct) = device(&at).map_err(failing(&at, "open"))?;
    let because = because(&file, direct);
    let (journal, mirror) = match pair {
        None => (journal_open::journal(device, None, 0, desk_at), None),
        Some(pair) => {
            let (journal, copies) = on_both(pair, device, &region, desk_at)?;
            (journal, Some(copies))
        }
    };
    Ok(Pool {
        region: Store::journaled(region, journal),
        file: file_of_image,
        image: Some(image),
        lock: Some(file),
        mirror,
        area: None,
        path: path.into(),
        superblock,
        medium: Medium::Block,
        because,
    })
}

/// The journal of a mirrored log, and its copies. `device` is that of the copy which is open already.
fn on_both(
    mut pair: Pair,
    device: OwnedFd,
    region: &Region,
    desk_at: usize,
) -> Result<(Journal, Mirrored), PoolError> {
    let at = &pair.this.path;
    let [first, second] = pair.devices(device).map_err(failing(at, "open"))?;
    let given = Desk::new(region, desk_at).given().load(SeqCst);
    let journal = journal_open::journal(first, Some(second), given, desk_at);
    let inherited = journal.inherit_rebuild(region).map_err(io::Error::from);
    if inherited.map_err(failing(at, "write to"))? {
        pair.notes.push("a copy of the log was being rebuilt when the former daemon ended".into());
    }
    Ok((journal, pair.mirrored()))
}

/// Opens the pool of a journal read-only, in use or not: its image of this boot, otherwise the journal's content, read
/// into private memory.
///
/// # Errors
/// [`PoolError`].
pub fn open_read_only_in(path: &Path, memory: &Path) -> Result<Pool, PoolError> {
    let file = File::open(path).map_err(opening(path))?;
    let region = Source::of(&file, path)?.view(memory)?;
    let superblock = superblock(&region, path)?;
    let because = because(&file, true);
    let (region, path, medium) = (region.into(), path.into(), Medium::Block);
    Ok(Pool {
        region,
        file,
        image: None,
        lock: None,
        mirror: None,
        area: None,
        path,
        superblock,
        medium,
        because,
    })
}

fn superblock(region: &Region, path: &Path) -> Result<Superblock, PoolError> {
    Superblock::read(region).map_err(|error| PoolError::Superblock { path: path.into(), error })
}

/// Reads a journal from its device as a recovery would, and drops the result. `None` if this is not a journal.
///
/// # Errors
/// [`PoolError`]: the damage.
pub fn check(path: &Path) -> Result<Option<Recovered>, PoolError> {
    if !is_journal(path)? {
        return Ok(None);
    }
    let file = File::open(path).map_err(opening(path))?;
    let mut before = None;
    loop {
        match journal_open::read_only(&file) {
            Ok(found) => return Ok(Some(found)),
            // Somebody may be writing to it meanwhile: only what is missing in the same way twice is missing.
            Err(JournalError::Lost { last, missing }) if before != Some((last, missing)) => {
                before = Some((last, missing));
            }
            Err(error) => return Err(PoolError::Journal { path: path.into(), error }),
        }
    }
}

/// The sizes of a journal's pool. `None` if this is not a journal.
///
/// # Errors
/// [`PoolError`].
pub fn sizes(path: &Path) -> Result<Option<Sizes>, PoolError> {
    if !is_journal(path)? {
        return Ok(None);
    }
    let file = File::open(path).map_err(opening(path))?;
    let anchor = Source::of(&file, path)?.anchor;
    Ok(Some(Sizes { image: anchor.image, journal: anchor.size }))
}

/// A description, in words, of what it lies on.
///
/// # Errors
/// [`PoolError`] if it cannot be opened.
pub fn describe(path: &Path) -> Result<String, PoolError> {
    let file = File::open(path).map_err(opening(path))?;
    let direct = file_flags(path, OFlags::RDONLY | OFlags::DIRECT).is_ok();
    Ok(because(&file, direct))
}

fn because(file: &File, direct: bool) -> String {
    let probed = probe_block(file).map(|probe| probe.describe());
    let how = if direct { "" } else { "; through the page cache, as O_DIRECT is refused" };
    probed.unwrap_or_else(|e| format!("cannot query the device: {e}")) + how
}

/// Gives a log that nobody uses, and that was closed, a second copy at `place`: a new file, or an empty device; with
/// `force` a device's content is overwritten. `memory` is where images lie.
///
/// # Errors
/// [`PoolError`].
pub fn join_mirror(path: &Path, place: &Path, force: bool, memory: &Path) -> Result<(), PoolError> {
    make::check_medium(if is_device(place) { place } else { directory(place) })?;
    check_closed(path, memory)?;
    mirror::join(path, place, force)
}

/// Has a log that nobody uses, and that was closed, go on without its other copy, which is lost for good. Records that
/// only the other copy held are given up. `memory` is where images lie.
///
/// # Errors
/// [`PoolError`].
pub fn part_mirror(path: &Path, memory: &Path) -> Result<(), PoolError> {
    check_closed(path, memory)?;
    mirror::part(path)
}

/// Where the other copy of a log is. `None` if it is not mirrored.
///
/// # Errors
/// [`PoolError`].
pub fn mirror_of(path: &Path) -> Result<Option<PathBuf>, PoolError> {
    if !is_journal(path)? {
        return Ok(None);
    }
    let file = File::open(path).map_err(opening(path))?;
    let anchor = Source::of(&file, path)?.anchor;
    let read = anchor.mirror().map(|_| label::read(&file, anchor.size)).transpose();
    read.map_err(failing(path, "read"))
}

fn check_closed(path: &Path, memory: &Path) -> Result<(), PoolError> {
    if !is_journal(path)? {
        return Err(PoolError::NotALog(path.into()));
    }
    let file = open_locked(path)?;
    let anchor = Source::of(&file, path)?.anchor;
    if !image_path(memory, anchor.uuid).exists() {
        return Ok(());
    }
    let why = "the log was not closed: `seawall recover` closes it".into();
    Err(PoolError::Mirror { path: path.into(), why })
}

/// The path of a pool's image.
pub fn image_path(memory: &Path, uuid: [u8; 16]) -> PathBuf {
    image::path_of(memory, uuid)
}

impl Pool {
    /// Another mapping of the pool's bytes, for an engine.
    ///
    /// # Errors
    /// [`PoolError`].
    pub fn store(&self) -> Result<Store, PoolError> {
        let len = self.region.len() as u64;
        let region = map(&self.file, &self.path, len, self.medium)?;
        let Some(journal) = self.region.journal() else { return Ok(region.into()) };
        let way = journal.way().again().map_err(failing(&self.path, "open"))?;
        Ok(Store::journaled(region, Journal::new(way, journal.desk_at())))
    }

    /// Gives up the image of a pool that was closed: a process that still has it mapped can never write the journal
    /// again, and the next daemon makes a new image from the journal. The caller made sure that nobody needs it.
    /// `is_closed`: nothing is registered, so nothing is live, and the journal is marked as closed.
    ///
    /// # Errors
    /// If it cannot be removed; it is given up all the same.
    pub fn remove_image(&self, is_closed: bool) -> io::Result<()> {
        let (Some(journal), Some(image)) = (self.region.journal(), &self.image) else { return Ok(()) };
        journal.give_up(&self.region, is_closed.then(|| self.layout()));
        std::fs::remove_file(&image.path)
    }
}
