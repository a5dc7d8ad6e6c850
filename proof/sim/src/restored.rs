//! A directory of the simulated file system as recovery replays names into it: every system call of
//! [`RealDirectory`](seawall_core::recover::RealDirectory), in its order, and between any two of them the power may fail.
//!
//! Not simulated: that a file was changed since the power came back.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use seawall_core::Errno;
use seawall_core::format::{Attributes, Handle};
use seawall_core::recover::{Here, NameSpace};
use seawall_core::stand_in::TEMPORARY;

use crate::Planted;
use crate::names::folder_hint;
use crate::tree::{Inode, Name, Tree};
use crate::world::World;

/// A directory of the machine itself, or of a copy that a power cut left.
pub struct Restored<'a> {
    world: &'a World,
    tree: &'a RefCell<Tree>,
    folder: usize,
    way: Way<'a>,
    /// Its entries before anything was replayed, once somebody asked for them.
    entries: OnceCell<BTreeMap<Handle, Name>>,
}

/// How a recovery goes.
#[derive(Clone, Copy)]
pub enum Way<'a> {
    /// On the machine: each step is a moment at which the power may fail.
    Live,
    /// In a copy, for so many steps.
    Copy(&'a Cell<u64>),
}

impl<'a> Restored<'a> {
    /// A directory of a tree.
    pub fn new(world: &'a World, tree: &'a RefCell<Tree>, folder: usize, way: Way<'a>) -> Self {
        Self { world, tree, folder, way, entries: OnceCell::new() }
    }

    /// One system call.
    fn step(&self, call: impl FnOnce(&mut Tree)) -> io::Result<()> {
        match self.way {
            Way::Live => {
                call(&mut self.tree.borrow_mut());
                self.world.point();
            }
            Way::Copy(left) => {
                let now = left.get().checked_sub(1).ok_or_else(|| io::Error::other("the power is off"))?;
                left.set(now);
                call(&mut self.tree.borrow_mut());
            }
        }
        Ok(())
    }

    fn find(&self, name: &[u8]) -> io::Result<usize> {
        self.tree.borrow().find(self.folder, name).ok_or_else(|| Errno::NOENT.into())
    }

    /// The directory at a name.
    fn folder_at(&self, name: &[u8]) -> Option<usize> {
        self.tree.borrow().folder_at(self.folder, name)
    }

    /// unlink(2), and rmdir(2) of a directory.
    fn unlink(&self, name: &[u8]) -> io::Result<()> {
        if self.find(name).is_err() {
            return Ok(());
        }
        if self.is_full(name) {
            return Err(Errno::NOTEMPTY.into());
        }
        self.step(|tree| tree.lead(vec![(self.folder, name.to_vec(), None)]))
    }

    fn link(&self, from: &Self, name: &[u8], to: &[u8]) -> io::Result<()> {
        self.unlink(to)?;
        if from.folder_at(name).is_some() {
            return Err(Errno::PERM.into());
        }
        let file = from.find(name)?;
        self.step(|tree| tree.lead(vec![(self.folder, to.to_vec(), Some(file))]))
    }

    /// rename(2), to a name that leads to nothing, or of a file over another one.
    fn rename(&self, from: &Self, name: &[u8], to: &[u8]) -> io::Result<()> {
        let (inode, over) = (from.find(name)?, self.find(to).ok());
        if over == Some(inode) {
            return Ok(());
        }
        match (from.folder_at(name), self.folder_at(to)) {
            (_, Some(_)) => return Err(Errno::ISDIR.into()),
            (Some(_), None) if over.is_some() => return Err(Errno::NOTDIR.into()),
            (Some(folder), None) if self.tree.borrow().is_within(self.folder, folder) => {
                return Err(Errno::INVAL.into());
            }
            _ => {}
        }
        let leads = vec![(from.folder, name.to_vec(), None), (self.folder, to.to_vec(), Some(inode))];
        self.step(|tree| tree.lead(leads))
    }

    /// What was just made says which file it stands for, durably.
    fn mark(&self, file: &Handle, place: &[u8]) -> io::Result<()> {
        self.world.count(|c| c.made_again += 1);
        let made = self.find(place)?;
        if !self.world.has(Planted::MadeUnmarked) {
            self.step(|tree| tree.mark(made, Some(*file)))?;
        }
        self.sync_inode(made)
    }

    fn handle_at(&self, name: &[u8]) -> Option<Handle> {
        let tree = self.tree.borrow();
        Some(self.world.handle_of(name, tree.inode(tree.find(self.folder, name)?)?))
    }

    fn sync_inode(&self, file: usize) -> io::Result<()> {
        self.step(|tree| tree.sync(file))
    }
}

/// Where a file is kept while names change.
fn place(file: &Handle) -> Name {
    let hex: String = file.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    [hex.as_bytes(), TEMPORARY].concat()
}

/// Its name on the way from there to its final name.
fn on_its_way(file: &Handle) -> Name {
    [&b"to."[..], &place(file)].concat()
}

impl NameSpace for Restored<'_> {
    fn path(&self) -> PathBuf {
        folder_hint(self.folder)
    }

    fn look(&self, name: &[u8]) -> Result<Option<Here>, String> {
        let tree = self.tree.borrow();
        let found = tree.find(self.folder, name).and_then(|file| tree.inode(file));
        let has_others = tree.find(self.folder, name).is_some_and(|file| tree.links(file) > 1);
        let here = |inode: &Inode| Here {
            itself: self.world.handle_of(name, inode),
            stands_for: inode.mark,
            target: inode.target.clone(),
            has_others,
        };
        Ok(found.map(here))
    }

    fn is_kept(&self, file: &Handle) -> Result<bool, String> {
        Ok(self.handle_at(&place(file)) == Some(*file))
    }

    fn name_of(&self, file: &Handle) -> Result<Option<Name>, String> {
        let list = || {
            let tree = self.tree.borrow();
            let own = tree.names(self.folder).iter().filter(|(name, _)| !name.ends_with(TEMPORARY));
            own.filter_map(|(name, file)| {
                Some((self.world.handle_of(name, tree.inode(*file)?), name.clone()))
            })
            .collect()
        };
        Ok(self.entries.get_or_init(list).get(file).cloned())
    }

    fn make(&self, file: &Handle, attributes: &Attributes, target: Option<&[u8]>) -> io::Result<()> {
        let place = place(file);
        if attributes.is_directory() {
            // A run that was cut may have made it.
            if self.folder_at(&place).is_none() {
                self.step(|tree| {
                    tree.make_folder(self.folder, &place, attributes.mode & 0o7777);
                })?;
            }
            return self.mark(file, &place);
        }
        self.unlink(&place)?;
        if let Some(target) = target {
            self.world.count(|c| c.made_again += 1);
            return self.step(|tree| {
                tree.point(self.folder, &place, target, Some(*file));
            });
        }
        self.step(|tree| {
            tree.make(self.folder, &place, attributes.mode);
        })?;
        self.mark(file, &place)
    }

    fn keep(&self, file: &Handle, from: &Self, name: &[u8]) -> io::Result<()> {
        if from.folder_at(name).is_some() {
            // It has only one name.
            return self.rename(from, name, &place(file));
        }
        self.link(from, name, &place(file))
    }

    fn is_full(&self, name: &[u8]) -> bool {
        self.folder_at(name).is_some_and(|folder| !self.tree.borrow().names(folder).is_empty())
    }

    fn inner(&self, file: &Handle, name: Option<&[u8]>) -> io::Result<Self> {
        let folder = self.folder_at(name.unwrap_or(&place(file)));
        Ok(Self::new(self.world, self.tree, folder.ok_or(Errno::NOTDIR)?, self.way))
    }

    fn fill(
        &self,
        file: &Handle,
        name: Option<&[u8]>,
        data: &[u8],
        _attributes: &Attributes,
    ) -> io::Result<()> {
        let place = place(file);
        let inode = self.find(name.unwrap_or(&place))?;
        if name.is_none() && self.world.has(Planted::MadeEmpty) {
            return Ok(());
        }
        self.step(|tree| tree.write(inode, |disk| disk.write(0, data)))?;
        self.step(|tree| tree.write(inode, |disk| disk.set_len(data.len())))?;
        self.sync_inode(inode)
    }

    fn put(&self, file: &Handle, from: &Self, name: &[u8]) -> io::Result<()> {
        let (place, next) = (place(file), on_its_way(file));
        if from.folder_at(&place).is_some() {
            // The kernel moves a directory over no file; a directory that was there is kept elsewhere by now, or removed.
            self.unlink(name)?;
            return self.rename(from, &place, name);
        }
        self.link(from, &place, &next)?;
        if self.folder_at(name).is_some() {
            self.unlink(name)?;
        }
        self.rename(self, &next, name)?;
        // If both are names of the same file, the rename removes neither.
        self.unlink(&next)
    }

    fn remove(&self, name: &[u8]) -> io::Result<()> {
        self.unlink(name)
    }

    fn sync_file(&self, name: &[u8]) -> io::Result<()> {
        match self.find(name) {
            Ok(file) => self.sync_inode(file),
            Err(_) => Ok(()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.step(|tree| tree.sync_names(self.folder))
    }

    fn clear(&self, files: &[Handle]) -> io::Result<()> {
        for file in files {
            self.unlink(&place(file))?;
        }
        self.sync()
    }

    fn end(&self, names: &[&[u8]]) {
        for name in names {
            let Ok(file) = self.find(name) else { continue };
            let is_marked = self.tree.borrow().inode(file).is_some_and(|inode| inode.mark.is_some());
            if is_marked {
                // A mark that stays means nothing to anybody.
                let _ = self.step(|tree| tree.mark(file, None));
            }
        }
    }
}
