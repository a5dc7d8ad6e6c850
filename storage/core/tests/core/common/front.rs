//! A directory in the log as the calls of a front reach it.

use std::cell::Cell;
use std::ffi::CStr;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::World;
use super::directory::{attributes, handle};
use seawall_core::file::Stand;
use seawall_core::naming::{Directory, Holds, Kind, Known, lies_within};
use seawall_core::{Engine, Errno, FileRef, Owner, Place};

/// A directory as a front reaches it.
pub struct Front<'w> {
    world: &'w World,
    directory: &'w super::directory::Directory<'w>,
    stand: Option<Stand>,
    /// Others that the log knows.
    others: Vec<&'w super::directory::Directory<'w>>,
    /// The disk refuses its next sync, as if the power went before it.
    pub fails: Cell<bool>,
}

impl<'w> Front<'w> {
    pub fn of(world: &'w World, directory: &'w super::directory::Directory<'w>) -> Self {
        Self {
            world,
            directory,
            stand: world.engine.stand(directory.name),
            others: Vec::new(),
            fails: Cell::new(false),
        }
    }

    /// With these below it.
    pub fn above(mut self, others: &[&'w super::directory::Directory<'w>]) -> Self {
        self.others.extend(others);
        self
    }

    pub fn path(&self, name: &CStr) -> std::path::PathBuf {
        self.directory.at(std::ffi::OsStr::from_bytes(name.to_bytes()).to_str().expect("text"))
    }
}

impl Place for Front<'_> {
    fn changed_before(&self) -> u64 {
        self.directory.changed()
    }

    fn changed(&self) -> u64 {
        self.directory.changed()
    }

    fn sync(&self, with_files: bool) -> Result<(), Errno> {
        if self.fails.get() { Err(Errno::IO) } else { Place::sync(self.directory, with_files) }
    }

    fn check(&self) -> Result<(), Errno> {
        self.directory.check()
    }
}

impl Directory for Front<'_> {
    fn engine(&self) -> &Engine {
        &self.world.engine
    }

    fn who(&self) -> Owner {
        self.world.who(0)
    }

    fn reference(&self) -> FileRef {
        self.directory.name
    }

    fn inode(&self) -> (u64, u64) {
        inode(&self.path(c"."))
    }

    fn uid(&self) -> u32 {
        self.path(c".").metadata().expect("there").uid()
    }

    fn keeps(&self, _name: &CStr) -> bool {
        true
    }

    fn stand(&self) -> Option<Stand> {
        self.stand
    }

    fn at(&self, name: &CStr) -> Option<Known> {
        let path = self.path(name);
        let meta = path.symlink_metadata().ok()?;
        let kind = match () {
            () if meta.is_symlink() => Kind::Symlink,
            () if meta.is_dir() => Kind::Directory,
            () => Kind::File,
        };
        let (attributes, handle) = (attributes(&path), Some(handle(&path)));
        Some(Known { kind, inode: inode(&path), links: meta.nlink(), attributes, handle })
    }

    fn itself(&self, name: &CStr) -> Option<Self> {
        let inode = self.path(name).symlink_metadata().map(|meta| (meta.dev(), meta.ino())).ok()?;
        let mut others = self.others.iter();
        others.find(|other| other.inode() == inode).map(|other| Self::of(self.world, other))
    }

    fn holds(&self) -> Holds {
        match fs::read_dir(self.path(c".")).expect("there").count() {
            0 => Holds::Nothing,
            _ => Holds::More,
        }
    }

    fn is_within(&self, inode: (u64, u64)) -> bool {
        lies_within(self.directory.file.as_fd(), inode)
    }

    fn with_target<R>(&self, name: &CStr, op: impl FnOnce(&[u8]) -> R) -> Option<R> {
        Some(op(fs::read_link(self.path(name)).ok()?.as_os_str().as_bytes()))
    }

    fn with_content<R>(&self, name: &CStr, _known: &Known, op: impl FnOnce(&[u8]) -> R) -> Option<R> {
        Some(op(&fs::read(self.path(name)).ok()?))
    }
}

/// st_dev and st_ino. Links are not followed.
pub fn inode(path: &Path) -> (u64, u64) {
    let meta = path.symlink_metadata().expect("there");
    (meta.dev(), meta.ino())
}
