//! The thread of a program that keeps its data in small files: it makes, writes, syncs, renames, links and removes them, in
//! the order that programs are known for, and in any other one.
//!
//! What becomes of a call on names is production's (`seawall_core::naming`); here is the kernel's part of it, and what an
//! fsync of a file is (`syncs`), which the preload and the mount have in their own words.

mod calls;
mod folders;
mod planted;
mod syncs;

use std::ffi::{CStr, CString};
use std::rc::Rc;

use seawall_core::{Engine, Owner};

use crate::Change;
use crate::client::bytes;
use crate::folder::Folder;
use crate::tree::Inode;
use crate::world::World;

/// Names of files: so few that calls meet.
const NAMES: [&CStr; 4] = [c"a", c"b", c"c", c"new"];
/// Most bytes of a file.
const LONGEST: u64 = 3000;

/// One logical thread of a process.
pub struct Namer {
    /// The machine.
    pub world: Rc<World>,
    /// The process's engine.
    pub engine: Rc<Engine>,
    /// Its client slot.
    pub slot: u32,
    /// Its number.
    pub thread: usize,
}

/// A name in a directory.
type Place = (usize, CString);

/// An open file; the kernel closes the files of the dead.
struct Open<'a> {
    world: &'a World,
    file: usize,
}

impl<'a> Open<'a> {
    /// Opens it.
    fn of(world: &'a World, file: usize) -> Self {
        world.shelf().tree.borrow_mut().open(file, true);
        Self { world, file }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.world.shelf().tree.borrow_mut().open(self.file, false);
    }
}

impl Namer {
    /// Lives for so many operations, if it is left alive.
    pub fn run(&self, operations: u64) {
        for _ in 0..operations {
            if self.world.is_over() {
                return;
            }
            self.world.count(|c| c.operations += 1);
            self.world.may_stall(64);
            self.operation();
            self.world.step();
        }
    }

    fn operation(&self) {
        let rng = &self.world.rng;
        if self.world.shelf().depth > 0 && rng.one_in(5) {
            return self.folder_operation();
        }
        match rng.below(100) {
            0..20 => self.replace(),
            20..25 => self.deliver(),
            25..28 => self.point(&self.place()),
            28..36 => drop(self.make(&self.place())),
            36..48 => self.rewrite(rng.one_in(2)),
            48..58 => self.remove(&self.place()),
            58..68 => {
                let from = self.place();
                self.rename(&from, &self.near(&from));
            }
            68..72 => self.exchange(),
            72..76 => {
                let from = self.place();
                self.link(&from, &self.near(&from));
            }
            76..84 => self.sync_at(&self.place()),
            84..97 => self.sync_folder(self.folder()),
            _ => self.world.give_way(),
        }
    }

    fn who(&self) -> Owner {
        World::owner(self.slot, self.thread)
    }

    fn folder(&self) -> usize {
        let there = self.world.shelf().tree.borrow().there();
        there[self.world.rng.below(there.len() as u64) as usize]
    }

    fn place(&self) -> Place {
        (self.folder(), self.world.rng.pick(&NAMES).to_owned())
    }

    /// Another place, mostly in the same directory: a file that moves elsewhere may take directories out of the log.
    fn near(&self, (folder, name): &Place) -> Place {
        let other = self.place();
        match self.world.rng.below(6) {
            0 => other,
            _ if other.1 == *name => (*folder, c"other".to_owned()),
            _ => (*folder, other.1),
        }
    }

    /// The directory, if it has a slot.
    fn here(&self, folder: usize) -> Option<Folder<'_>> {
        self.world.step();
        Folder::find(&self.world, &self.engine, self.who(), folder)
    }

    fn find(&self, (folder, name): &Place) -> Option<usize> {
        self.world.shelf().tree.borrow().find(*folder, name.to_bytes())
    }

    /// The same of a file: nobody follows symbolic links, or writes directories.
    fn find_file(&self, place: &Place) -> Option<usize> {
        self.find(place).filter(|file| self.is_file(*file))
    }

    fn is_file(&self, file: usize) -> bool {
        let is_file = |inode: &Inode| inode.target.is_none() && inode.folder.is_none();
        self.world.shelf().tree.borrow().inode(file).is_some_and(is_file)
    }

    /// A new file takes the place of an old one, as most programs do it.
    fn replace(&self) {
        let rng = &self.world.rng;
        let to = self.place();
        let from = if rng.one_in(8) { self.place() } else { (to.0, c"new".to_owned()) };
        let Some(open) = self.make(&from) else { return };
        self.write(&open, rng.one_in(2));
        self.sync_file(&open);
        if rng.one_in(4) {
            self.write(&open, false);
        }
        self.rename(&from, &to);
        if rng.below(4) > 0 {
            self.sync_folder(to.0);
        }
    }

    /// Mail comes: a file is written in one directory, and gets its name in another one, or in the same.
    fn deliver(&self) {
        let (from, to) = ((self.folder(), c"new".to_owned()), self.place());
        let Some(open) = self.make(&from) else { return };
        self.write(&open, false);
        self.sync_file(&open);
        self.link(&from, &to);
        if !self.world.rng.one_in(6) {
            self.remove(&from);
        }
        self.sync_folder(to.0);
    }

    /// A file that is there gets other bytes.
    fn rewrite(&self, and_sync: bool) {
        let Some(file) = self.find_file(&self.place()) else { return };
        let open = Open::of(&self.world, file);
        self.write(&open, self.world.rng.one_in(3));
        if and_sync {
            self.sync_file(&open);
        }
    }

    fn sync_at(&self, place: &Place) {
        let Some(file) = self.find_file(place) else { return };
        self.sync_file(&Open::of(&self.world, file));
    }

    /// Bytes that no other file has.
    fn write(&self, open: &Open<'_>, cut: bool) {
        let rng = &self.world.rng;
        let at = if cut { 0 } else { rng.below(LONGEST / 2) as usize };
        let bytes = bytes(&self.world, rng.below(LONGEST));
        if cut {
            self.world.writes(open.file, &Change::Truncate(0));
        }
        self.world.writes(open.file, &Change::Write(at, bytes));
    }
}
