//! A pool whose copies are on other hosts: an image in memory here, and no device.
//!
//! The pool's file says who keeps it; the caller that opens it has reached these keepers, and brings what they have. In
//! the boot that used it, the image is newer than the copies, so it is taken as it is; otherwise it is made from the
//! newest copy.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use rustix::io::Errno;
use seawall_media::{Medium, Region};
use seawall_wire::desk::{Desk, alone};
use seawall_wire::keeper::{Epoch, Position};

use super::block::kinds::Image;
use super::block::{image, image_path, nameless};
use super::error::PoolError;
use super::machine::host;
use super::mappings::{mapped_by_others, users_of_memory};
use super::opened::Pool;
use super::steps::{io as failing, map_error};
use crate::format::{Cell, Layout, SegmentHeader, Superblock};
use crate::journal::{
    Copies, GIVEN_UP, Journal, Standing, Way, bury_dead, only_the_daemon_sends, open as journal_open,
};
use crate::store::Store;

/// An image in memory.
pub struct InMemory {
    file: File,
    region: Region,
    path: PathBuf,
    bytes: u64,
    made: bool,
}

impl InMemory {
    /// The image of the log with this UUID, if this boot used it.
    ///
    /// # Errors
    /// [`PoolError`]: its copies failed, and processes that got this error still have it mapped.
    pub fn existing(memory: &Path, uuid: [u8; 16], bytes: u64) -> Result<Option<Self>, PoolError> {
        let path = image_path(memory, uuid);
        let layout = layout(&path, bytes)?;
        let all = journal_open::memory_bytes(bytes, layout);
        let Some((file, region)) = image::of_this_boot(&path, all, uuid)? else { return Ok(None) };
        let desk = Desk::new(&region, bytes as usize);
        if desk.failed().load(SeqCst) == GIVEN_UP {
            return Ok(None);
        }
        if desk.failed().load(SeqCst) != 0 {
            let users = mapped_by_others(&file).map_err(failing(&path, "find out which processes use"))?;
            if !users.is_empty() {
                let error = io::Error::from_raw_os_error(desk.failed().load(SeqCst) as i32);
                return Err(PoolError::DeviceFailed { path, error, users });
            }
            // The files have everything that the image holds and the copies lack, and are synced next.
            desk.failed().store(0, SeqCst);
        }
        bury_dead(desk);
        // Processes of the daemon before this one may go on without it.
        only_the_daemon_sends(desk);
        Ok(Some(Self { file, region, path, bytes, made: false }))
    }

    /// Makes the image: `fill` brings the newest copy's content into zeros, and returns whose turn begins with which
    /// copy, and the log's number at that point.
    ///
    /// # Errors
    /// [`PoolError`]; the error of `fill`.
    pub fn make<E: From<PoolError>>(
        memory: &Path,
        uuid: [u8; 16],
        bytes: u64,
        fill: impl FnOnce(&Region) -> Result<(Epoch, Position, u64), E>,
    ) -> Result<Self, E> {
        let path = image_path(memory, uuid);
        let layout = layout(&path, bytes)?;
        let all = journal_open::memory_bytes(bytes, layout);
        let (file, region, ()) = image::make(&path, &path, all, |fresh| {
            fresh.back_all()?;
            let region = &fresh.region;
            let turn = fill(region)?;
            let desk = Desk::new(region, bytes as usize);
            journal_open::lay_out_kept(desk, uuid, turn);
            has_all_segments(desk, region, layout);
            Ok::<_, E>(())
        })?;
        Ok(Self { file, region, path, bytes, made: true })
    }

    /// True if this host went on without its keepers, and its files have everything that the log has.
    pub fn is_alone(&self) -> bool {
        self.desk().alone().load(SeqCst) == alone::IS
    }

    /// What its writers share.
    pub fn desk(&self) -> Desk<'_> {
        Desk::new(&self.region, self.bytes as usize)
    }

    /// The log between two batches, for a keeper that needs its image. Nobody leads: the pool is not open yet, and
    /// nobody else sends.
    ///
    /// # Errors
    /// EIO if the image is damaged.
    pub fn standing(&self) -> Result<Standing<'_>, Errno> {
        Standing::of(self.desk(), &self.region)
    }

    /// The pool whose file is at `path`, and is locked by `lock`; `copies` can be reached. `because` says what the pool
    /// survives. `moves`: the log is taken over from another host, and belongs to this one from now on.
    ///
    /// # Errors
    /// [`PoolError`].
    pub fn open(
        self,
        (path, lock): (&Path, File),
        copies: Arc<dyn Copies>,
        because: String,
        moves: bool,
    ) -> Result<Pool, PoolError> {
        let Self { file, region, path: at, bytes, made } = self;
        let superblock =
            Superblock::read(&region).map_err(|error| PoolError::Superblock { path: path.into(), error })?;
        if superblock.host != host() && !moves {
            return Err(PoolError::OtherHost { path: path.into() });
        }
        let journal = Journal::new(Way::Kept(copies), bytes as usize);
        let mut pool = Pool {
            region: Store::journaled(region, journal),
            file,
            image: Some(Image { path: at, made, read: None }),
            lock: Some(lock),
            mirror: None,
            area: None,
            path: path.into(),
            superblock,
            medium: Medium::Replicated,
            because,
        };
        if superblock.host != host() {
            pool.move_here().map_err(failing(path, "record this host in"))?;
        }
        Ok(pool)
    }
}

/// The pool for a process that only reads: its image of this boot, otherwise what `fill` brings of a copy, in private
/// memory. `because` says what the pool survives.
///
/// # Errors
/// [`PoolError`]; the error of `fill`.
pub fn view<E: From<PoolError>>(
    (path, memory): (&Path, &Path),
    (uuid, bytes): ([u8; 16], u64),
    because: String,
    fill: impl FnOnce(&Region) -> Result<(), E>,
) -> Result<Pool, E> {
    let at = image_path(memory, uuid);
    let all = journal_open::memory_bytes(bytes, layout(&at, bytes)?);
    let owner = path.metadata().map(|meta| meta.uid()).map_err(failing(path, "read the owner of"))?;
    let seen = image::view((&at, path), (all, uuid, bytes as usize), owner, fill)?;
    Ok(looked_at(path, seen, because)?)
}

/// The pool for a process that only reads what `fill` brings of a copy, in private memory. Its file need not be at
/// `path`.
///
/// # Errors
/// [`PoolError`]; the error of `fill`.
pub fn view_of_copy<E: From<PoolError>>(
    path: &Path,
    bytes: u64,
    because: String,
    fill: impl FnOnce(&Region) -> Result<(), E>,
) -> Result<Pool, E> {
    let all = journal_open::memory_bytes(bytes, layout(path, bytes)?);
    let file = nameless(all).map_err(failing(path, "make an image of"))?;
    let region = Region::map(&file, all, false).map_err(|e| map_error(path, e))?;
    fill(&region)?;
    Ok(looked_at(path, (file, region), because)?)
}

fn looked_at(path: &Path, (file, region): (File, Region), because: String) -> Result<Pool, PoolError> {
    let superblock =
        Superblock::read(&region).map_err(|error| PoolError::Superblock { path: path.into(), error })?;
    Ok(Pool {
        region: region.into(),
        file,
        image: None,
        lock: None,
        mirror: None,
        area: None,
        path: path.into(),
        superblock,
        medium: Medium::Replicated,
        because,
    })
}

/// Other processes of this host that have the image of the log with this UUID mapped, as far as we can see.
///
/// # Errors
/// If there is no way to find out.
pub fn users(memory: &Path, uuid: [u8; 16]) -> io::Result<Vec<u32>> {
    users_of_memory(&image_path(memory, uuid))
}

/// The first content of a new log's image of this many bytes: empty tables. `take` gets it in stretches that are not
/// all zeros.
///
/// # Errors
/// [`PoolError`]; the error of `take`.
pub fn format<E: From<PoolError>>(
    path: &Path,
    uuid: [u8; 16],
    bytes: u64,
    mut take: impl FnMut(u64, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let layout = layout(path, bytes)?;
    let memory = nameless(bytes).map_err(failing(path, "make an image of"))?;
    let region = Region::map(&memory, bytes, false).map_err(|e| map_error(path, e))?;
    let owner = rustix::process::getuid().as_raw();
    let mut superblock = Superblock::new(layout, bytes, uuid, host(), Superblock::JOURNALED, owner);
    Cell::at(Layout::retired()).format(&region, 0);
    superblock.write(&region);
    superblock.write(&region);
    let mut first = vec![0; Layout::root(0)];
    region.read(0, &mut first);
    take(0, &first)
}

/// Everything in an image that was fetched is in batches that count, to the end of each segment.
fn has_all_segments(desk: Desk<'_>, region: &Region, layout: Layout) {
    let Ok(superblock) = Superblock::read(region) else { return };
    for index in 0..layout.segments {
        let header = SegmentHeader::read(region, layout.segment(index), superblock.uuid_low());
        let cursor = header.map_or(0, |header| header.seq << 32 | u64::from(layout.segment_bytes));
        desk.cursor(index).store(cursor, SeqCst);
    }
}

fn layout(path: &Path, bytes: u64) -> Result<Layout, PoolError> {
    Layout::for_size(bytes).ok_or_else(|| PoolError::Size { path: path.into(), size: bytes })
}
