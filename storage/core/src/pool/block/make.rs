//! Making a journal: in a file that is filled first, or on a device that may be overwritten.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::FallocateFlags;
use seawall_media::Region;
use seawall_media::block::{ANCHOR_MAGIC, Anchor, RING_AT, Recovered, probe_block, size_of};
use seawall_wire::desk::Desk;

use super::super::error::PoolError;
use super::super::file as whole;
use super::super::machine::host;
use super::super::steps::{io as failing, lock};
use super::device::{is_device, open_locked};
use super::image;
use super::kinds::Sizes;
use crate::format::{AreaHeader, Cell, Layout, Superblock};
use crate::journal::open;
use crate::store::Store;

/// How much of a device is read before it is overwritten: file systems, partition tables and RAIDs begin there.
const LOOKED_AT: usize = 1 << 20;

/// Makes a pool whose journal is at `path`: a new file, or an empty device. `image` is its size in memory. With `force`
/// existing content is replaced, unless somebody uses it. `memory` is where images lie.
///
/// # Errors
/// [`PoolError`].
pub fn create(path: &Path, image: u64, force: bool, memory: &Path) -> Result<(), PoolError> {
    if is_device(path) {
        check_medium(path)?;
        return on_device(path, image, force, memory);
    }
    check_medium(whole::directory(path))?;
    if path.exists() && !force {
        return Err(PoolError::Exists(path.into()));
    }
    if path.exists() {
        let old = OpenOptions::new().read(true).write(true).open(path).map_err(failing(path, "open"))?;
        lock(&old, path)?;
        image::give_up(&old, path, memory)?;
        // The lock is held until the name is free.
        std::fs::remove_file(path).map_err(failing(path, "remove"))?;
    }
    create_file(path, Sizes::of(image))
}

/// Makes a pool whose journal is a new file.
///
/// It gets its name when it is complete: a process that is killed halfway leaves nothing.
///
/// # Errors
/// [`PoolError`].
pub fn create_file(path: &Path, sizes: Sizes) -> Result<(), PoolError> {
    let layout = layout(path, sizes)?;
    let file = unnamed(path, sizes.journal)?;
    format(&file, path, sizes, layout)?;
    whole::give_name(&file, path)
}

/// A new, locked file of this many bytes.
pub(super) fn room(path: &Path, bytes: u64) -> Result<File, PoolError> {
    let file = unnamed(path, bytes)?;
    lock(&file, path)?;
    whole::give_name(&file, path)?;
    Ok(file)
}

/// A new file of this many bytes, without a name yet.
pub(in crate::pool) fn unnamed(path: &Path, bytes: u64) -> Result<File, PoolError> {
    if path.exists() {
        return Err(PoolError::Exists(path.into()));
    }
    let file = whole::unnamed(path)?;
    // Room is taken now, and written: no later write may change the file's extents.
    take_room(&file, bytes).map_err(|error| PoolError::NoRoom {
        path: whole::directory(path).into(),
        bytes,
        error,
    })?;
    whole::fill(&file, bytes).map_err(failing(path, "fill"))?;
    Ok(file)
}

/// Checks first: an attempt that fails halfway would take everybody's room for a while.
fn take_room(file: &File, bytes: u64) -> io::Result<()> {
    let fs = rustix::fs::fstatvfs(file)?;
    if fs.f_bavail.saturating_mul(fs.f_frsize) < bytes {
        return Err(rustix::io::Errno::NOSPC.into());
    }
    Ok(rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes)?)
}

/// Makes a pool whose journal is a device.
fn on_device(path: &Path, image: u64, force: bool, memory: &Path) -> Result<(), PoolError> {
    let device = open_locked(path)?;
    let sizes = Sizes::of(image);
    let layout = layout(path, sizes)?;
    check_room(&device, path, sizes.journal)?;
    match holds(&device).map_err(failing(path, "read"))? {
        None => {}
        Some(_) if force => image::give_up(&device, path, memory)?,
        Some(by) => return Err(PoolError::UsedDevice { path: path.into(), by }),
    }
    format(&device, path, sizes, layout)
}

fn layout(path: &Path, sizes: Sizes) -> Result<Layout, PoolError> {
    Layout::for_size(sizes.image).ok_or_else(|| PoolError::Size { path: path.into(), size: sizes.image })
}

/// A device of this many bytes that is empty, or whose content may be lost, with this process as its only user.
pub(in crate::pool) fn empty_device(path: &Path, bytes: u64, force: bool) -> Result<File, PoolError> {
    let device = open_locked(path)?;
    check_room(&device, path, bytes)?;
    check_empty(&device, path, force)?;
    Ok(device)
}

/// Refuses a device or file with fewer bytes.
pub(super) fn check_room(file: &File, path: &Path, bytes: u64) -> Result<(), PoolError> {
    let has = size_of(file).map_err(failing(path, "read the size of"))?;
    if has >= bytes {
        return Ok(());
    }
    let error = io::Error::other(format!("it has {} MiB", has >> 20));
    Err(PoolError::NoRoom { path: path.into(), bytes, error })
}

/// Refuses a device that is not empty, unless with `force`.
pub(super) fn check_empty(device: &File, path: &Path, force: bool) -> Result<(), PoolError> {
    match holds(device).map_err(failing(path, "read"))? {
        Some(by) if !force => Err(PoolError::UsedDevice { path: path.into(), by }),
        _ => Ok(()),
    }
}

/// The kind of content on a device, if it is not empty.
fn holds(device: &File) -> io::Result<Option<&'static str>> {
    let mut start = vec![0; LOOKED_AT];
    let mut device = device;
    rustix::fs::seek(device, rustix::fs::SeekFrom::Start(0))?;
    device.read_exact(&mut start)?;
    Ok(match start.iter().any(|byte| *byte != 0) {
        false => None,
        true if start.starts_with(&ANCHOR_MAGIC) => Some("a Seawall log"),
        true if AreaHeader::parse(&start).is_some() => Some("a spill area of Seawall"),
        true => Some("its first MiB is not empty"),
    })
}

/// Memory in the guise of a device, a file or a file system survives nothing.
pub(in crate::pool) fn check_medium(path: &Path) -> Result<(), PoolError> {
    let file = File::open(path).map_err(failing(path, "open"))?;
    let probe = probe_block(&file).map_err(failing(path, "probe"))?;
    match probe.memory {
        None => Ok(()),
        Some(what) => {
            let because = format!("{what} is RAM, and survives no power cut");
            Err(PoolError::NotBlock { path: path.into(), because })
        }
    }
}

fn format(file: &File, path: &Path, sizes: Sizes, layout: Layout) -> Result<(), PoolError> {
    let uuid = whole::random_uuid(path)?;
    let block = open::block_of(file).map_err(failing(path, "probe"))?;
    let anchor =
        open::format(file, uuid, sizes.image, sizes.journal, block).map_err(failing(path, "format"))?;
    first_batch(file, anchor, layout).map_err(failing(path, "write to"))
}

/// The first superblocks and an empty table.
fn first_batch(file: &File, anchor: Anchor, layout: Layout) -> io::Result<()> {
    let bytes = open::memory_bytes(anchor.image, layout);
    let memory = image::nameless(bytes)?;
    let region = Region::map(&memory, bytes, false).map_err(|e| io::Error::other(format!("{e:?}")))?;
    let desk_at = anchor.image as usize;
    let empty = Recovered { anchor, last: 0, highest: 0, end: RING_AT, batches: 0 };
    open::lay_out(Desk::new(&region, desk_at), &empty);
    let store = Store::journaled(region, open::journal(file.try_clone()?.into(), None, 0, desk_at));
    let owner = rustix::process::getuid().as_raw();
    let mut sb = Superblock::new(layout, anchor.image, anchor.uuid, host(), Superblock::JOURNALED, owner);
    store.change(&[(0, Layout::root(0))], |region| {
        Cell::at(Layout::retired()).format(region, 0);
        sb.write(region);
        sb.write(region);
    })?;
    if let Some(journal) = store.journal() {
        journal.give_up(&store, Some(layout));
    }
    Ok(())
}
