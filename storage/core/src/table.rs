//! The pool's tables: registered directories and managed files.
//!
//! Only the daemon writes them, and it writes each entry before anything refers to it: a crash in the middle of a
//! registration leaves an entry that nobody refers to.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::io::Errno;
use seawall_media::{Identity, Region, fence};
use seawall_wire::shm::{Policy, Preset};

use crate::file::{FileRef, Newcomer};
use crate::format::{
    self, Descriptor, EntryState, FILE_ENTRY_BYTES, Layout, ROOT_ENTRY_BYTES, ROOTS, RootDescriptor,
    RootSlot, Superblock, Zone,
};
use crate::pool::Pool;
use crate::store::{Range, Store};

/// A registered directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootEntry {
    /// What is managed below it.
    pub preset: Preset,
    /// How much of it is logged.
    pub policy: Policy,
    /// Its real path at registration.
    pub path: PathBuf,
    /// Its owner: recovery writes to files of this user only.
    pub uid: u32,
    /// The database's directory, where the guard stands.
    pub data: PathBuf,
    /// The directory itself.
    pub identity: Identity,
}

/// A managed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Its slot.
    pub slot: u32,
    /// Generation of the slot.
    pub generation: u32,
    /// Index of its root.
    pub root: u32,
    /// Its identity.
    pub identity: Identity,
    /// Where it was registered, relative to the root. A hint.
    pub path: PathBuf,
    /// A directory, whose records are changes of names in it.
    pub is_directory: bool,
    /// All its records at or below this LSN are on disk.
    pub watermark: u64,
}

/// What is wrong with a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableError {
    /// An entry's checksum does not match, or it belongs to a later version.
    Damaged {
        /// The zone.
        zone: Zone,
        /// The entry.
        entry: u32,
    },
    /// No entry is free.
    Full(Zone),
    /// A path or a handle is too long for its entry.
    TooLong,
    /// The pool's device failed.
    Device(Errno),
}

impl From<Errno> for TableError {
    fn from(e: Errno) -> Self {
        Self::Device(e)
    }
}

impl std::fmt::Display for TableError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Damaged { zone, entry } => write!(
                f,
                "entry {entry} of the pool's zone {zone:?} is damaged: the records for the file or directory \
                 that it names cannot be replayed. `seawall inspect` shows the rest"
            ),
            Self::Full(Zone::Roots) => write!(
                f,
                "{ROOTS} directories are registered in this pool, which is its limit, and all of them still \
                 exist: use another pool for this one"
            ),
            Self::Full(zone) => write!(f, "the pool's zone {zone:?} has no free entry: use a larger pool"),
            Self::TooLong => write!(f, "the path or the file handle is too long"),
            Self::Device(e) => write!(f, "the pool's device failed: {e}"),
        }
    }
}

impl std::error::Error for TableError {}

/// The registered directories, by index.
///
/// # Errors
/// [`TableError::Damaged`].
pub fn roots(pool: &Pool) -> Result<Vec<(u32, RootEntry)>, TableError> {
    let mut roots = Vec::new();
    for i in 0..ROOTS {
        match RootDescriptor::read(&pool.region, i) {
            RootSlot::Unused => {}
            RootSlot::Damaged => return Err(TableError::Damaged { zone: Zone::Roots, entry: i }),
            RootSlot::Used(d) => {
                let damaged = TableError::Damaged { zone: Zone::Roots, entry: i };
                let known = Preset::from_u32(d.preset).zip(Policy::from_u32(d.policy));
                let (preset, policy) = known.ok_or(damaged)?;
                roots.push((i, root_entry(&d, preset, policy)));
            }
        }
    }
    Ok(roots)
}

fn root_entry(d: &RootDescriptor, preset: Preset, policy: Policy) -> RootEntry {
    RootEntry {
        preset,
        policy,
        path: OsStr::from_bytes(d.path()).into(),
        uid: d.uid,
        data: OsStr::from_bytes(d.data()).into(),
        identity: Identity { fs: d.fs, kind: d.handle_kind, handle: d.handle().to_vec() },
    }
}

/// Registers a directory, or finds it registered. Persisted when this returns.
///
/// # Errors
/// [`TableError`].
pub fn add_root(pool: &Pool, root: &RootEntry) -> Result<u32, TableError> {
    let known = roots(pool)?;
    if let Some((i, _)) = known.iter().find(|(_, known)| known == root) {
        // Its writer may have been killed before its fence.
        pool.region.change(&[root_range(*i)], |region| {
            region.flush(Layout::root(*i), ROOT_ENTRY_BYTES);
            fence();
        })?;
        return Ok(*i);
    }
    let mut d = descriptor(root)?;
    let free = (0..ROOTS).find(|i| !known.iter().any(|(used, _)| used == i));
    let i = free.ok_or(TableError::Full(Zone::Roots))?;
    pool.region.change(&[root_range(i)], |region| d.write(region, i))?;
    Ok(i)
}

/// Updates a directory's entry to where it is now: on another host, for example. Persisted when this returns.
///
/// # Errors
/// [`TableError`].
pub fn move_root(pool: &Pool, i: u32, root: &RootEntry) -> Result<(), TableError> {
    let mut d = descriptor(root)?;
    pool.region.change(&[root_range(i)], |region| d.write(region, i)).map_err(Into::into)
}

fn descriptor(root: &RootEntry) -> Result<RootDescriptor, TableError> {
    let id = &root.identity;
    let mut d = RootDescriptor::new(
        root.preset as u32,
        root.uid,
        id.fs,
        (id.kind, &id.handle),
        root.path.as_os_str().as_bytes(),
        root.data.as_os_str().as_bytes(),
    )
    .ok_or(TableError::TooLong)?;
    d.policy = root.policy as u32;
    Ok(d)
}

fn root_range(i: u32) -> Range {
    (Layout::root(i), ROOT_ENTRY_BYTES)
}

fn file_range(slot: u32) -> Range {
    (Layout::file(slot), FILE_ENTRY_BYTES)
}

/// Frees a directory's entry. No file entry refers to it.
///
/// # Errors
/// [`TableError::Device`].
pub fn forget_root(pool: &Pool, i: u32) -> Result<(), TableError> {
    pool.region.change(&[root_range(i)], |region| RootDescriptor::erase(region, i)).map_err(Into::into)
}

/// The managed files.
///
/// # Errors
/// [`TableError::Damaged`] for the first entry that cannot be believed.
pub fn files(pool: &Pool) -> Result<Vec<FileEntry>, TableError> {
    (0..pool.superblock.files).filter_map(|slot| file(pool, slot).transpose()).collect()
}

/// One entry of the file table, if it is used.
///
/// # Errors
/// [`TableError::Damaged`].
pub fn file(pool: &Pool, slot: u32) -> Result<Option<FileEntry>, TableError> {
    let damaged = TableError::Damaged { zone: Zone::Files, entry: slot };
    let state = EntryState::read(&pool.region, slot).ok_or(damaged.clone())?;
    if !state.used {
        return Ok(None);
    }
    let d = Descriptor::read(&pool.region, slot).ok_or(damaged.clone())?;
    let watermark = format::watermark(slot).load(&pool.region).ok_or(damaged)?;
    Ok(Some(FileEntry {
        slot,
        generation: state.generation,
        root: d.root,
        identity: Identity { fs: d.fs, kind: d.handle_kind, handle: d.handle().to_vec() },
        path: OsStr::from_bytes(d.path()).into(),
        is_directory: d.is_directory(),
        watermark,
    }))
}

/// The log may hold changes of names from now on: a program that does not know them refuses the pool. Persisted when
/// this returns.
///
/// # Errors
/// [`TableError::Device`], or the superblock cannot be read any more.
pub(crate) fn expect_names(store: &Store) -> Result<(), TableError> {
    let unreadable = |_| TableError::Damaged { zone: Zone::Superblock, entry: 0 };
    let mut superblock = Superblock::read(store).map_err(unreadable)?;
    if superblock.flags & Superblock::NAMES != 0 {
        return Ok(());
    }
    superblock.expect_names();
    store.change(&[(Layout::superblock(0), Layout::superblock(1) * 2)], |region| {
        superblock.write(region);
        fence();
    })?;
    Ok(())
}

/// Enters a file, by its root, its identity and its path there, into the first free slot of these. Persisted when this
/// returns; its records may follow, all of them newer than `on_disk`.
///
/// # Errors
/// [`TableError`].
pub(crate) fn enter(
    store: &Store,
    slots: impl Iterator<Item = u32>,
    newcomer: &Newcomer<'_>,
    on_disk: u64,
) -> Result<FileRef, TableError> {
    let (slot, state) = free_slot(store, slots)?;
    let generation = state.generation.wrapping_add(1).max(1);
    let (identity, hint) = (newcomer.identity, newcomer.hint.as_os_str().as_bytes());
    let d = Descriptor::new(newcomer.root, identity.fs, identity.kind, &identity.handle, hint)
        .ok_or(TableError::TooLong)?;
    let d = if newcomer.is_directory { d.of_directory() } else { d };
    store.change(&[file_range(slot)], |region| {
        // The process that freed the slot may have been killed before its fence: its entry must not change while it
        // counts.
        state.write(region, slot);
        d.store(region, slot);
        format::watermark(slot).format(region, on_disk);
        fence();
        EntryState { generation, used: true }.write(region, slot);
    })?;
    Ok(FileRef { slot, generation })
}

fn free_slot(store: &Store, mut slots: impl Iterator<Item = u32>) -> Result<(u32, EntryState), TableError> {
    let unused = |slot| EntryState::read(store, slot).filter(|state| !state.used).map(|state| (slot, state));
    slots.find_map(unused).ok_or(TableError::Full(Zone::Files))
}

/// Frees a slot. The file has no live records: it was retired, or none of them counts any more.
///
/// # Errors
/// [`TableError::Device`].
pub(crate) fn strike_out(store: &Store, slot: u32) -> Result<(), TableError> {
    store.change(&[file_range(slot)], |region| free(region, slot)).map_err(Into::into)
}

/// Frees every slot, in memory. Recovery calls this, and makes all of it durable at once where memory is not.
pub(crate) fn forget_all(pool: &Pool) {
    (0..pool.superblock.files).for_each(|slot| free(&pool.region, slot));
}

fn free(region: &Region, slot: u32) {
    if let Some(state) = EntryState::read(region, slot)
        && state.used
    {
        EntryState { used: false, ..state }.write(region, slot);
    }
}
