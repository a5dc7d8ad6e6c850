//! What a power cut left, in a copy: files and directories, as a recovery finds them and writes to them.

use std::cell::{Cell, RefCell};
use std::io;
use std::path::PathBuf;

use seawall_core::recover::{Locate, Sink, Target, Unwritable};
use seawall_core::table::{FileEntry, RootEntry};

use crate::names::{identified, identified_folder};
use crate::restored::{Restored, Way};
use crate::tree::Tree;
use crate::world::World;

/// A file as a power cut left it.
pub struct Left {
    pub content: RefCell<Vec<u8>>,
    pub dirty: Cell<bool>,
    pub touched: Cell<bool>,
    pub gone: bool,
}

impl Left {
    fn new(content: Vec<u8>, gone: bool) -> Self {
        Self { content: RefCell::new(content), dirty: Cell::new(false), touched: Cell::new(false), gone }
    }
}

impl Sink for &Left {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (at, end) = (offset as usize, offset as usize + bytes.len());
        let mut content = self.content.borrow_mut();
        if !bytes.is_empty() {
            let len = content.len().max(end);
            content.resize(len, 0);
            content[at..end].copy_from_slice(bytes);
        }
        self.dirty.set(true);
        self.touched.set(true);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.content.borrow_mut().resize(len as usize, 0);
        self.dirty.set(true);
        self.touched.set(true);
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.dirty.set(false);
        Ok(())
    }
}

/// All that a power cut left.
pub struct AsCut {
    pub files: Vec<Left>,
    /// Directories whose names are in the log.
    pub tree: Option<RefCell<Tree>>,
}

impl AsCut {
    /// True once anything was written.
    pub fn is_touched(&self) -> bool {
        let is_touched = |tree: &RefCell<Tree>| tree.borrow().is_touched;
        self.files.iter().any(|file| file.touched.get()) || self.tree.as_ref().is_some_and(is_touched)
    }
}

/// Where a recovery finds it, for so many steps.
pub struct Places<'a> {
    world: &'a World,
    left: &'a AsCut,
    steps: Cell<u64>,
}

impl<'a> Places<'a> {
    /// To the end.
    pub fn of(world: &'a World, left: &'a AsCut) -> Self {
        Self::until(world, left, u64::MAX)
    }

    /// Until the power fails once more.
    pub fn until(world: &'a World, left: &'a AsCut, steps: u64) -> Self {
        Self { world, left, steps: Cell::new(steps) }
    }
}

impl<'a> Locate for &'a Places<'a> {
    type File = &'a Left;
    type Names = Restored<'a>;

    fn directory(&self, root: Option<&RootEntry>, entry: &FileEntry) -> Result<Restored<'a>, Unwritable> {
        let tree = self.left.tree.as_ref().ok_or_else(|| "no directory is in this log".to_owned())?;
        let folder = identified_folder(root, entry, &tree.borrow())?;
        Ok(Restored::new(self.world, tree, folder, Way::Copy(&self.steps)))
    }

    fn locate(
        &self,
        root: Option<&RootEntry>,
        entry: &FileEntry,
        _power_lost: bool,
    ) -> Result<Target<&'a Left>, Unwritable> {
        let left = self
            .left
            .files
            .get(identified(root, entry)?)
            .ok_or_else(|| "there is no such file".to_owned())?;
        if left.gone {
            return Err("it was removed".to_owned().into());
        }
        Ok(Target { file: left, path: PathBuf::from(&entry.path) })
    }
}

/// The files after a cut. One that was removed, or never synced, may be there or not.
pub fn left(world: &World) -> AsCut {
    let rng = &world.rng;
    let files = world.files.borrow();
    let left = files.iter().enumerate().map(|(index, file)| {
        let content = world.left_of(index);
        Left::new(content, (file.unlinked || file.fresh) && rng.one_in(2))
    });
    let tree = world.shelf.as_ref().map(|shelf| RefCell::new(shelf.tree.borrow().cut(rng)));
    AsCut { files: left.collect(), tree }
}
