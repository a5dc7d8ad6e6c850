//! A pool on a block device: a journal there, an image of the pool in memory.
//!
//! Input: the journal's path. Output: a pool like any other, whose changes the journal makes durable. The image lies
//! in a memory file system under the pool's UUID. In the boot that used it, it is newer than the journal (nobody has to
//! sync for a process to read what another one wrote), so it is taken as it is; else it is made from the journal.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, OFlags};
use seawall_media::block::{Anchor, Recovered};
use seawall_media::{Medium, Region};
use seawall_wire::desk::Desk;

use super::{Pool, PoolError, boot, create, host, io as failing, lock, map_error};
use crate::format::{Cell, Layout, Superblock};
use crate::journal::open;
use crate::store::Store;
use crate::takeover::open_own;

/// Sizes of a new pool on a block device.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Bytes of the image: what a pool in memory would have.
    pub image: u64,
    /// Bytes of the journal.
    pub journal: u64,
}

impl Sizes {
    /// The usual ones for an image of this size.
    pub fn of(image: u64) -> Self {
        Self { image, journal: open::smallest(image).next_multiple_of(1 << 20) }
    }
}

/// Makes a pool whose journal is a new file.
///
/// It gets its name when it is whole: a process that is killed half-way leaves nothing.
///
/// # Errors
/// [`PoolError`].
pub fn create_file(path: &Path, sizes: Sizes) -> Result<(), PoolError> {
    let layout = Layout::for_size(sizes.image)
        .ok_or_else(|| PoolError::TooSmall { path: path.into(), size: sizes.image })?;
    if path.exists() {
        return Err(PoolError::Exists(path.into()));
    }
    let file = create::unnamed(path)?;
    // Room is taken now, and written: later no write may have to change the file's extents.
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, sizes.journal)
        .map_err(|e| e.into())
        .map_err(failing(path, "reserving room for"))?;
    create::fill(&file, sizes.journal).map_err(failing(path, "filling"))?;
    let uuid = create::random_uuid(path)?;
    let block = open::block_of(&file).map_err(failing(path, "probing"))?;
    let anchor =
        open::format(&file, uuid, sizes.image, sizes.journal, block).map_err(failing(path, "formatting"))?;
    first_batch(&file, anchor, layout).map_err(failing(path, "writing to"))?;
    create::give_name(&file, path)
}

/// The first superblocks and an empty table.
fn first_batch(file: &File, anchor: Anchor, layout: Layout) -> io::Result<()> {
    let bytes = open::memory_bytes(anchor.image, layout);
    let memory = File::from(rustix::fs::memfd_create("seawall-image", rustix::fs::MemfdFlags::CLOEXEC)?);
    memory.set_len(bytes)?;
    let region = Region::map(&memory, bytes, false).map_err(|e| io::Error::other(format!("{e:?}")))?;
    let desk_at = anchor.image as usize;
    let end = seawall_media::block::RING_AT;
    let empty = Recovered { anchor, last: 0, highest: 0, end, batches: 0 };
    open::lay_out(Desk::new(&region, desk_at), &empty);
    let store = Store::journaled(region, open::journal(file.try_clone()?.into(), desk_at));
    let owner = rustix::process::getuid().as_raw();
    let mut sb = Superblock::new(layout, anchor.image, anchor.uuid, host(), Superblock::JOURNALED, owner);
    store.change(&[(0, Layout::root(0))], |region| {
        Cell::at(Layout::retired()).format(region, 0);
        sb.write(region);
        sb.write(region);
    })?;
    Ok(())
}

/// True if this is a journal, and not a pool in memory.
///
/// # Errors
/// [`PoolError`] if it cannot be read.
pub fn is_journal(path: &Path) -> Result<bool, PoolError> {
    let mut start = [0; 8];
    let mut file = File::open(path).map_err(super::opening(path))?;
    let read = file.read_exact(&mut start);
    Ok(read.is_ok() && start == seawall_media::block::ANCHOR_MAGIC)
}

/// Opens the pool of a journal for writing and locks it. `memory` is where its image lies or is to be made.
///
/// # Errors
/// [`PoolError`].
pub fn open_in(path: &Path, memory: &Path) -> Result<Pool, PoolError> {
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(super::opening(path))?;
    lock(&file, path)?;
    let journal_error = |error| PoolError::Journal { path: path.into(), error };
    let anchor = open::anchor_of(&file).map_err(journal_error)?;
    let layout = Layout::for_size(anchor.image)
        .ok_or_else(|| PoolError::TooSmall { path: path.into(), size: anchor.image })?;
    let bytes = open::memory_bytes(anchor.image, layout);
    let at = image_path(memory, anchor.uuid);
    let image = match existing(&at, bytes, &anchor).map_err(failing(&at, "opening the image"))? {
        Some(image) => image,
        None => make(&at, bytes, &file, path, &anchor)?,
    };
    let region = Region::map(&image, bytes, false).map_err(|e| map_error(&at, e))?;
    let superblock =
        Superblock::read(&region).map_err(|error| PoolError::Superblock { path: path.into(), error })?;
    if superblock.host != host() {
        return Err(PoolError::OtherHost { path: path.into() });
    }
    let device = direct(path).map_err(failing(path, "opening"))?;
    let because = seawall_media::block::probe_block(&file).map(|probe| probe.describe()).unwrap_or_default();
    let region = Store::journaled(region, open::journal(device, anchor.image as usize));
    Ok(Pool {
        region,
        file: image,
        lock: Some(file),
        path: path.into(),
        superblock,
        medium: Medium::Block,
        because,
    })
}

/// For durable writes: past the page cache, where the file system can do that.
fn direct(path: &Path) -> io::Result<OwnedFd> {
    let open = |flags: OFlags| {
        OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags.bits() as i32)
            .open(path)
            .map(OwnedFd::from)
    };
    open(OFlags::DIRECT).or_else(|_| open(OFlags::empty()))
}

/// The image of a pool.
pub fn image_path(memory: &Path, uuid: [u8; 16]) -> PathBuf {
    memory.join(format!("seawall-{:032x}.image", u128::from_le_bytes(uuid)))
}

/// The image, if this boot used it with this journal.
fn existing(at: &Path, bytes: u64, anchor: &Anchor) -> io::Result<Option<File>> {
    let Some((file, _)) = open_own(at)?.filter(|(_, len)| *len == bytes) else { return Ok(None) };
    let region = Region::map(&file, bytes, false).map_err(|e| io::Error::other(format!("{e:?}")))?;
    if !Superblock::read(&region).is_ok_and(|sb| sb.boot == boot() && sb.uuid == anchor.uuid) {
        return Ok(None);
    }
    if !open::is_of(Desk::new(&region, anchor.image as usize), anchor) {
        return Err(io::Error::other(
            "it was used in front of another copy of this log, and holds what that one lacks: put that log back",
        ));
    }
    Ok(Some(file))
}

/// Makes the image from the journal. Whoever finds it under its name finds it complete.
fn make(at: &Path, bytes: u64, journal: &File, path: &Path, anchor: &Anchor) -> Result<File, PoolError> {
    let temporary = at.with_extension(format!("{}.new", std::process::id()));
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(true).mode(0o600);
    let file = options.open(&temporary).map_err(failing(&temporary, "creating"))?;
    file.set_len(bytes).map_err(failing(&temporary, "sizing"))?;
    // A full memory must not become a SIGBUS in a database.
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes)
        .map_err(|e| e.into())
        .map_err(failing(&temporary, "reserving room for"))?;
    let region = Region::map(&file, bytes, false).map_err(|e| map_error(&temporary, e))?;
    let loaded = open::load(journal, &region, anchor.image as usize);
    loaded.map_err(|error| PoolError::Journal { path: path.into(), error })?;
    std::fs::rename(&temporary, at).map_err(failing(at, "naming"))?;
    Ok(file)
}

impl Pool {
    /// The pool's bytes once more, for an engine.
    ///
    /// # Errors
    /// [`PoolError`].
    pub fn store(&self) -> Result<Store, PoolError> {
        let len = self.region.len() as u64;
        let region = super::map(&self.file, &self.path, len, self.medium)?;
        let Some(journal) = self.region.journal() else { return Ok(region.into()) };
        let device = journal.way().device().map_err(io::Error::from);
        let fd = device.and_then(|fd| fd.try_clone_to_owned()).map_err(failing(&self.path, "opening"))?;
        Ok(Store::journaled(region, open::journal(fd, journal.desk_at())))
    }
}
