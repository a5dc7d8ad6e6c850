//! The daemon's descriptors of files and directories, for those who destage and who clean up.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use seawall_core::destage::Files;
use seawall_core::file::captured::Captured;
use seawall_core::reap::Writable;

use crate::world::World;

/// All of them.
pub struct Descriptors<'a> {
    world: &'a World,
    last: Option<Rc<File>>,
    lazy: bool,
}

impl<'a> Descriptors<'a> {
    /// `lazy`: some files may be left out of a destage round.
    pub fn of(world: &'a World, lazy: bool) -> Self {
        Self { world, last: None, lazy }
    }
}

fn unknown() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "no descriptor of it")
}

impl Files for Descriptors<'_> {
    fn descriptor(&mut self, slot: u32) -> io::Result<BorrowedFd<'_>> {
        if let Some(shelf) = &self.world.shelf {
            let folder = shelf.folder_in(slot).ok_or_else(unknown)?;
            self.last = Some(shelf.descriptor(folder));
            return self.last.as_ref().map(|file| file.as_fd()).ok_or_else(unknown);
        }
        let index = self.world.file_in(slot).ok_or_else(unknown)?;
        self.last = Some(Rc::clone(&self.world.files.borrow()[index].cache));
        self.last.as_ref().map(|file| file.as_fd()).ok_or_else(unknown)
    }

    fn sync_directory(&mut self, slot: u32, files: &[Captured]) -> io::Result<()> {
        let shelf = self.world.shelf.as_ref().ok_or_else(unknown)?;
        self.world.destages_folder(shelf.folder_in(slot).ok_or_else(unknown)?, files);
        Ok(())
    }

    fn sync_around(&mut self, slot: u32) -> io::Result<()> {
        let shelf = self.world.shelf.as_ref().ok_or_else(unknown)?;
        self.world.syncs_folder(shelf.folder_in(slot).ok_or_else(unknown)?, true);
        Ok(())
    }

    fn is_due(&mut self, _slot: u32, _watermark: u64) -> bool {
        !self.lazy || self.world.rng.below(2) == 0
    }
}

impl Writable for Descriptors<'_> {
    fn writable(&mut self, slot: u32) -> io::Result<File> {
        let index = self.world.file_in(slot).ok_or_else(unknown)?;
        self.world.tell(|| format!("reap opens file {index}"));
        // It may be killed itself before it has published anything.
        self.world.step();
        self.world.watched_descriptor(index)
    }

    fn sync_directory(&mut self, slot: u32) -> io::Result<()> {
        let shelf = self.world.shelf.as_ref().ok_or_else(unknown)?;
        self.world.syncs_folder(shelf.folder_in(slot).ok_or_else(unknown)?, true);
        Ok(())
    }
}
