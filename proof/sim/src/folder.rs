//! A directory in the log, as a process reaches it: what `seawall_core::naming` needs of a front.

use std::ffi::CStr;
use std::os::fd::AsFd;

use seawall_core::file::Stand;
use seawall_core::format::Attributes;
use seawall_core::naming::{Directory, Kind, Known};
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
    reference: FileRef,
    /// When it was found.
    changed: u64,
    /// How its changes stood then.
    stand: Option<Stand>,
}

impl<'w> Folder<'w> {
    /// The directory, if it has a slot.
    pub fn find(world: &'w World, engine: &'w Engine, who: Owner, folder: usize) -> Option<Self> {
        let changed = world.shelf().tree.borrow().changed(folder);
        let reference = world.shelf().find(engine, folder)?;
        let stand = engine.stand(reference);
        Some(Self { world, engine, who, folder, reference, changed, stand })
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
        names::folder_inode(self.folder)
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
        let tree = self.world.shelf().tree.borrow();
        let file = tree.find(self.folder, name.to_bytes())?;
        let inode = tree.inode(file)?;
        Some(Known {
            kind: if inode.target.is_some() { Kind::Symlink } else { Kind::File },
            inode: names::inode_of(inode),
            links: tree.links(file),
            attributes: attributes(inode),
            handle: Some(self.world.handle_of(name.to_bytes(), inode)),
        })
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

fn attributes(inode: &Inode) -> Attributes {
    Attributes { mode: inode.mode, uid: USER, gid: USER, modified: (0, 0) }
}
