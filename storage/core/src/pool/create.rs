//! A new pool: a file without a name, filled, its zones made, then named.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::FallocateFlags;
use seawall_media::{HUGE_PAGE, Medium, Region, magic, probe};

use super::area;
use super::block::make::check_medium;
use super::error::PoolError;
use super::file::{directory, fill, give_name, random_uuid, unnamed};
use super::machine::host;
use super::steps::{io, lock, map};
use crate::format::{Cell, Layout, Superblock, slot_at};
use crate::spill::{self, Plan};

/// Makes a pool of `size` bytes and persists its empty zones.
///
/// It gets its name when it is complete: a process that is killed halfway leaves nothing.
///
/// # Errors
/// [`PoolError`]; an existing file is kept unless `force`.
pub fn create(path: &Path, size: u64, emulated: bool, force: bool) -> Result<(), PoolError> {
    create_with_area(path, size, emulated, force, None)
}

/// [`create`], with a spill area behind it, in a new file or on a device. A process that is killed halfway may leave
/// the area, which nobody uses.
///
/// # Errors
/// [`PoolError`]; an existing file and a device's content are kept unless `force`; the area's existing file is always
/// kept.
pub fn create_with_area(
    path: &Path,
    size: u64,
    emulated: bool,
    force: bool,
    plan: Option<&Plan>,
) -> Result<(), PoolError> {
    let whole = Layout::for_size(size).ok_or_else(|| PoolError::Size { path: path.into(), size })?;
    if path.exists() && !force {
        return Err(PoolError::Exists(path.into()));
    }
    let layout = plan.map_or(Ok(whole), |plan| with_area(whole, plan))?;
    if let Some(plan) = plan.filter(|_| !emulated) {
        check_medium(area::lies_on(&plan.path))?;
    }
    let file = create_file(path, size)?;
    let area = plan.map(|plan| Ok((plan, area::room(plan, force)?))).transpose()?;
    create_in(&file, path, layout, size, emulated, area.as_ref())?;
    if let Some((plan, file)) = &area {
        area::give_name(file, plan)?;
    }
    if force && path.exists() {
        let old = OpenOptions::new().read(true).write(true).open(path).map_err(io(path, "open"))?;
        lock(&old, path)?;
        std::fs::remove_file(path).map_err(io(path, "remove"))?;
    }
    give_name(&file, path)
}

/// With fewer slots an area is not worth making.
const LEAST_SLOTS: u32 = 4;

fn with_area(whole: Layout, plan: &Plan) -> Result<Layout, PoolError> {
    let slots = plan.slots(whole);
    let layout = whole.with_spill(slots).filter(|_| slots >= LEAST_SLOTS);
    layout.ok_or_else(|| PoolError::SpillSize {
        path: plan.path.clone(),
        least: slot_at(LEAST_SLOTS, whole.segment_bytes),
        most: slot_at(whole.most_slots(), whole.segment_bytes),
    })
}

/// A file without a name, filled.
fn create_file(path: &Path, size: u64) -> Result<File, PoolError> {
    let file = unnamed(path)?;
    huge_pages(&file, size).map_err(|e| no_room(path, size, e))?;
    // Room is taken now: a full file system must not become a SIGBUS in a database.
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size)
        .map_err(|e| no_room(path, size, e.into()))?;
    fill(&file, size).map_err(io(path, "fill"))?;
    Ok(file)
}

fn no_room(path: &Path, bytes: u64, error: std::io::Error) -> PoolError {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            PoolError::NoRoom { path: directory(path).into(), bytes, error }
        }
        _ => io(path, "reserve space for")(error),
    }
}

/// On tmpfs: backs the file with huge pages as far as the kernel has any. Each process that uses the log enters its
/// pages into its own page table, which every backend of a database does once: 400 µs for each MiB in small pages, 8 µs
/// in huge ones. It is no error if there are none.
fn huge_pages(file: &File, size: u64) -> std::io::Result<()> {
    if rustix::fs::fstatfs(file)?.f_type as u64 != magic::TMPFS {
        return Ok(());
    }
    file.set_len(size)?;
    // The kernel collapses only pages that exist, so each stretch gets one.
    for at in (0..size).step_by(HUGE_PAGE) {
        file.write_all_at(&[0], at)?;
    }
    if let Ok(region) = Region::map(file, size, false) {
        region.collapse(0, size as usize);
    }
    Ok(())
}

fn create_in(
    file: &File,
    path: &Path,
    layout: Layout,
    size: u64,
    emulated: bool,
    area: Option<&(&Plan, File)>,
) -> Result<(), PoolError> {
    let probed = probe(file).map_err(|error| PoolError::Probe { path: path.into(), error })?;
    if probed.medium == Medium::Emulated && !emulated {
        return Err(PoolError::NotEmulated { path: path.into(), because: probed.because });
    }
    let region = map(file, path, size, probed.medium)?;
    Cell::at(Layout::retired()).format(&region, 0);
    let owner = rustix::process::getuid().as_raw();
    let spills = if area.is_some() { Superblock::SPILLS } else { 0 };
    let flags = spills | if emulated { Superblock::EMULATED } else { 0 };
    let mut sb = Superblock::new(layout, size, random_uuid(path)?, host(), flags, owner);
    if let Some((plan, file)) = area {
        let error = |error| PoolError::SpillPath { path: plan.path.clone(), error };
        let at = std::path::absolute(&plan.path).map_err(error)?;
        spill::make(file, &at, plan.slots(layout), &region, &sb).map_err(error)?;
    }
    sb.write(&region);
    sb.write(&region);
    file.sync_all().map_err(io(path, "sync"))
}
