//! The identities of the simulated files, the same in every life: of the registered directory, and of its files.

use std::path::PathBuf;

use seawall_core::table::{FileEntry, RootEntry};
use seawall_media::Identity;
use seawall_wire::shm::{Policy, Preset};

use crate::tree::{Inode, Tree};

/// The number of the simulated file behind a table entry: what names it must be as it was registered.
///
/// # Errors
/// It is not.
pub fn identified(root: Option<&RootEntry>, entry: &FileEntry) -> Result<usize, String> {
    let known = root.ok_or("its directory is not registered")? == &registered_root();
    let handle: [u8; 4] = entry.identity.handle.as_slice().try_into().map_err(|_| "not a simulated file")?;
    let index = u32::from_le_bytes(handle) as usize;
    let same = entry.identity == identity(index) && entry.path == hint(index);
    if known && same { Ok(index) } else { Err("it is not what was registered".into()) }
}

/// The directory of all simulated files.
pub fn registered_root() -> RootEntry {
    RootEntry {
        preset: Preset::Postgres,
        policy: Policy::Tail,
        path: "/simulated".into(),
        uid: 0,
        data: "/simulated".into(),
        identity: Identity { fs: [7; 16], kind: 1, handle: vec![9; 8] },
    }
}

/// A simulated file's identity.
pub fn identity(index: usize) -> Identity {
    Identity { fs: [7; 16], kind: 1, handle: (index as u32).to_le_bytes().to_vec() }
}

/// Its st_dev and st_ino.
pub fn inode(index: usize) -> (u64, u64) {
    (7, index as u64 + 1)
}

/// Where it is.
pub fn hint(index: usize) -> PathBuf {
    format!("file{index}").into()
}

/// The directory behind a table entry, as a recovery finds it.
///
/// # Errors
/// It is not there.
pub fn identified_folder(root: Option<&RootEntry>, entry: &FileEntry, tree: &Tree) -> Result<usize, String> {
    root.ok_or("its root is not registered")?;
    folder_with(tree, &entry.identity).ok_or_else(|| "it is not in its directory any more".into())
}

/// The directory that is this one.
pub fn folder_with(tree: &Tree, identity: &Identity) -> Option<usize> {
    tree.there().into_iter().find(|folder| folder_identity(tree, *folder) == *identity)
}

/// A simulated directory's identity.
pub fn folder_identity(tree: &Tree, folder: usize) -> Identity {
    let handle = tree.inode_of(folder).and_then(|inode| Some(tree.inode(inode)?.handle()));
    match handle {
        Some(handle) => Identity { fs: [7; 16], kind: handle.kind(), handle: handle.bytes().to_vec() },
        None => Identity { fs: [7; 16], kind: 2, handle: (folder as u64).to_le_bytes().to_vec() },
    }
}

/// Its st_dev and st_ino.
pub fn folder_inode(tree: &Tree, folder: usize) -> (u64, u64) {
    let itself = tree.inode_of(folder).and_then(|inode| tree.inode(inode));
    itself.map_or((7, (1 << 20) + folder as u64), inode_of)
}

/// Where it is.
pub fn folder_hint(folder: usize) -> PathBuf {
    format!("folder{folder}").into()
}

/// st_dev and st_ino of a file in a simulated directory.
pub fn inode_of(inode: &Inode) -> (u64, u64) {
    (7, u64::from(inode.number))
}
