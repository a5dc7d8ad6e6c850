//! A directory in the log, as a process reaches it: what `seawall_core::naming` needs of a front.

use std::ffi::CStr;
use std::os::fd::AsFd;

use seawall_core::file::Stand;
use seawall_core::format::Attributes;
use seawall_core::naming::{Directory, Holds, Kind, Known};
use seawall_core::{Engine, Errno, FileRef, Owner, Place, certain};

use crate::names;
use crate::tree::Inode;
use crate::world::World;

/// The user of all files.
pub const USER: u32 = 0;

/// A directory, and whose call it is.
pub struct Folder<'w> {
    world: &'w World,
    engine: &'w Engine,
    who: Owner,
    folder: usize,
    inode: (u64, u64),
    reference: FileRef,
    /// When it was found.
    changed: u64,
    /// How its changes stood then.
    stand: Option<Stand>,
}

impl<'w> Folder<'w> {
    /// The directory, if it is there and has a slot.
    pub fn find(world: &'w World, engine: &'w Engine, who: Owner, folder: usize) -> Option<Self> {
        let (dev, ino) = {
            let tree = world.shelf().tree.borrow();
            tree.is_there(folder).then(|| names::folder_inode(&tree, folder))?
        };
        Some(Self::new(world, engine, who, folder, engine.find(dev, ino)?))
    }

    /// The directory, which has this slot.
    pub fn new(world: &'w World, engine: &'w Engine, who: Owner, folder: usize, reference: FileRef) -> Self {
        let (changed, inode) = {
            let tree = world.shelf().tree.borrow();
            (tree.changed(folder), names::folder_inode(&tree, folder))
        };
        Self { world, engine, who, folder, inode, reference, changed, stand: engine.stand(reference) }
    }

    /// The same for the daemon, which does not remember its change time.
    pub fn unread(self) -> Self {
        Self { changed: 0, ..self }
    }
}

impl Place for Folder<'_> {
    fn changed_before(&self) -> u64 {
        self.changed
    }

    fn changed(&self) -> u64 {
        self.world.step();
        self.world.shelf().tree.borrow().changed(self.folder)
    }

    fn sync(&self, with_files: bool) -> Result<(), Errno> {
        self.world.syncs_folder(self.folder, with_files);
        Ok(())
    }

    fn check(&self) -> Result<(), Errno> {
        certain::check(self.world.shelf().descriptor(self.folder).as_fd())
    }
}

impl Directory for Folder<'_> {
    fn engine(&self) -> &Engine {
        self.engine
    }

    fn who(&self) -> Owner {
        self.who
    }

    fn reference(&self) -> FileRef {
        self.reference
    }

    fn inode(&self) -> (u64, u64) {
        self.inode
    }

    fn uid(&self) -> u32 {
        USER
    }

    fn keeps(&self, _name: &CStr) -> bool {
        true
    }

    fn stand(&self) -> Option<Stand> {
        self.stand
    }

    fn at(&self, name: &CStr) -> Option<Known> {
        self.world.step();
        self.world.known(self.folder, name.to_bytes())
    }

    fn itself(&self, name: &CStr) -> Option<Self> {
        self.world.step();
        let folder = self.world.shelf().tree.borrow().folder_at(self.folder, name.to_bytes())?;
        Self::find(self.world, self.engine, self.who, folder)
    }

    fn holds(&self) -> Holds {
        self.world.step();
        let is_empty = self.world.shelf().tree.borrow().names(self.folder).is_empty();
        if is_empty { Holds::Nothing } else { Holds::More }
    }

    fn is_within(&self, inode: (u64, u64)) -> bool {
        self.world.step();
        let tree = self.world.shelf().tree.borrow();
        let other = tree.there().into_iter().find(|folder| names::folder_inode(&tree, *folder) == inode);
        other.is_none_or(|other| tree.is_within(self.folder, other))
    }

    fn with_target<R>(&self, name: &CStr, op: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.world.step();
        let target = {
            let tree = self.world.shelf().tree.borrow();
            tree.inode(tree.find(self.folder, name.to_bytes())?)?.target.clone()
        };
        target.as_deref().map(op)
    }

    fn with_content<R>(&self, name: &CStr, known: &Known, op: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.world.step();
        let content = {
            let tree = self.world.shelf().tree.borrow();
            let inode = tree.inode(tree.find(self.folder, name.to_bytes())?)?;
            (names::inode_of(inode) == known.inode).then(|| inode.content().to_vec())
        };
        content.map(|content| op(&content))
    }
}

impl World {
    /// What is at a name of a directory.
    pub fn known(&self, folder: usize, name: &[u8]) -> Option<Known> {
        let tree = self.shelf().tree.borrow();
        let file = tree.find(folder, name)?;
        let inode = tree.inode(file)?;
        let kind = match inode {
            Inode { folder: Some(_), .. } => Kind::Directory,
            Inode { target: Some(_), .. } => Kind::Symlink,
            _ => Kind::File,
        };
        Some(Known {
            kind,
            inode: names::inode_of(inode),
            links: tree.links(file),
            attributes: attributes(inode),
            handle: Some(self.handle_of(name, inode)),
        })
    }
}

/// What the kernel says of it.
fn attributes(inode: &Inode) -> Attributes {
    Attributes { mode: inode.mode, uid: USER, gid: USER, modified: (0, 0) }
}
