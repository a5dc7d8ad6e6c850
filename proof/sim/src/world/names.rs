//! The directories of the simulated machine: their names, who is in the log, and what was promised of them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::rc::Rc;

use seawall_core::file::captured::Captured;
use seawall_core::format::Handle;
use seawall_core::{Errno, FileRef};

use super::World;
use crate::ledger::{Act, Due, Ledger};
use crate::tree::{Inode, Lead, Tree};
use crate::{Change, Disk, Mutant, Planted};

/// One call in so many is refused by the kernel.
const REFUSED: u64 = 40;

/// Directories whose names are in the log.
pub struct Shelf {
    /// How many directories may be in each other, below the first ones.
    pub depth: u64,
    /// The file system.
    pub tree: RefCell<Tree>,
    /// What was promised.
    pub ledger: RefCell<Ledger>,
    /// A descriptor of each directory.
    descriptors: RefCell<Vec<Rc<File>>>,
    /// The slots of those that the daemon knows.
    pub slots: RefCell<BTreeMap<usize, FileRef>>,
    /// What processes ask the daemon for.
    pub asked: RefCell<VecDeque<Asked>>,
}

/// A process asks for a directory, and waits.
pub struct Asked {
    /// Which one.
    pub folder: usize,
    /// It was made lately, and is to enter the log before the disk has it.
    pub is_new: bool,
    /// The daemon has answered.
    pub is_answered: Rc<Cell<bool>>,
}

impl Shelf {
    /// Empty directories.
    pub fn of(folders: usize, depth: u64, sector: usize, tick: u64) -> Self {
        Self {
            depth,
            tree: RefCell::new(Tree::of(folders, sector, tick)),
            ledger: RefCell::new(Ledger::of(folders)),
            descriptors: RefCell::default(),
            slots: RefCell::default(),
            asked: RefCell::default(),
        }
    }

    /// A descriptor of a directory.
    pub fn descriptor(&self, folder: usize) -> Rc<File> {
        let mut descriptors = self.descriptors.borrow_mut();
        while descriptors.len() <= folder {
            let fd = rustix::fs::memfd_create("seawall-sim-folder", rustix::fs::MemfdFlags::CLOEXEC);
            descriptors.push(Rc::new(File::from(fd.expect("a memory file"))));
        }
        Rc::clone(&descriptors[folder])
    }

    /// The directory behind a descriptor.
    pub fn folder_of(&self, fd: i32) -> Option<usize> {
        self.descriptors.borrow().iter().position(|file| file.as_raw_fd() == fd)
    }

    /// The directory in a slot.
    pub fn folder_in(&self, slot: u32) -> Option<usize> {
        self.slots.borrow().iter().find(|(_, name)| name.slot == slot).map(|(folder, _)| *folder)
    }
}

/// A handle that a name alone decides.
fn named_handle(name: &[u8]) -> Handle {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(name).for_each(|(byte, letter)| *byte = *letter);
    Handle::new(1, &bytes).expect("short")
}

impl World {
    /// True if this bug is planted.
    pub fn has(&self, planted: Planted) -> bool {
        self.mutant == Mutant::Planted(planted)
    }

    /// How a file is called in records, and how a recovery recognizes it.
    pub fn handle_of(&self, name: &[u8], inode: &Inode) -> Handle {
        if self.has(Planted::ByName) {
            return named_handle(name);
        }
        if self.has(Planted::ByNumber) {
            return Inode::new(inode.number, 0, 0, Disk::holding(Vec::new())).handle();
        }
        inode.handle()
    }

    /// The directories.
    ///
    /// # Panics
    /// In a run without any.
    pub fn shelf(&self) -> &Shelf {
        self.shelf.as_ref().expect("a run with directories")
    }

    /// A call that changes names, up to its return.
    pub fn naming<R>(&self, act: Act, call: impl FnOnce() -> Result<R, Errno>) -> Result<R, Errno> {
        let thread = self.thread.get();
        self.tell(|| format!("{act:?} ..."));
        self.shelf().ledger.borrow_mut().begin(thread, act);
        let done = call();
        match done.is_err() && self.log_has_failed() {
            true => self.shelf().ledger.borrow_mut().failed(thread),
            false => self.shelf().ledger.borrow_mut().end(thread),
        }
        self.tell(|| "... returned".into());
        done
    }

    /// The kernel makes a change of names, or refuses it.
    ///
    /// # Errors
    /// EIO.
    pub fn renames(&self, leads: impl FnOnce(&Tree) -> Result<Vec<Lead>, Errno>) -> Result<(), Errno> {
        if self.rng.one_in(REFUSED) {
            self.tell(|| "the kernel refuses".into());
            return Err(Errno::IO);
        }
        let shelf = self.shelf();
        let leads = leads(&shelf.tree.borrow())?;
        shelf.tree.borrow_mut().lead(leads.clone());
        shelf.ledger.borrow_mut().changed(self.thread.get(), &leads);
        self.has_named(&leads);
        Ok(())
    }

    /// The kernel makes a directory.
    pub fn makes_folder(&self, folder: usize, name: &[u8]) {
        let mode = self.rng.pick(&[0o700, 0o755]);
        let made = self.shelf().tree.borrow_mut().make_folder(folder, name, mode);
        self.has_made((folder, name), made);
    }

    /// The kernel makes a file.
    pub fn makes(&self, folder: usize, name: &[u8]) -> usize {
        let mode = self.rng.pick(&[0o600, 0o640, 0o755]);
        let file = {
            let tree = &mut *self.shelf().tree.borrow_mut();
            let file = tree.make(folder, name, mode);
            tree.open(file, true);
            file
        };
        self.has_made((folder, name), file);
        file
    }

    /// The kernel makes a symbolic link.
    pub fn points(&self, folder: usize, name: &[u8], target: &[u8]) {
        let link = self.shelf().tree.borrow_mut().point(folder, name, target, None);
        self.has_made((folder, name), link);
    }

    fn has_made(&self, (folder, name): (usize, &[u8]), file: usize) {
        let leads = [(folder, name.to_vec(), Some(file))];
        if let Some(made) = self.shelf().tree.borrow().inode(file) {
            let mut ledger = self.shelf().ledger.borrow_mut();
            ledger.made(file, made, folder);
            ledger.changed(self.thread.get(), &leads);
        }
        self.has_named(&leads);
    }

    fn has_named(&self, leads: &[Lead]) {
        self.tell(|| {
            let of = |(folder, name, file): &Lead| format!("{folder}/{} is {file:?}", name.escape_ascii());
            leads.iter().map(of).collect::<Vec<_>>().join(", ")
        });
        self.count(|c| c.named += 1);
        self.point();
    }

    /// The kernel changes the bytes of a file.
    pub fn writes(&self, file: usize, change: &Change) {
        self.step();
        let shelf = self.shelf();
        shelf.tree.borrow_mut().write(file, |disk| match change {
            Change::Write(at, bytes) => disk.write(*at, bytes),
            Change::Truncate(len) => disk.set_len(*len),
            _ => {}
        });
        if let Some(inode) = shelf.tree.borrow().inode(file) {
            shelf.ledger.borrow_mut().wrote(file, inode.content());
        }
        self.tell(|| format!("file {file}: {}", change.brief()));
        self.point();
    }

    /// A real sync of a file.
    pub fn syncs_file(&self, file: usize) {
        self.step();
        self.shelf().tree.borrow_mut().sync(file);
        self.tell(|| format!("real sync of file {file}"));
        self.point();
        self.is_slow();
    }

    /// A real sync of a directory, or of everything.
    pub fn syncs_folder(&self, folder: usize, with_files: bool) {
        self.step();
        {
            let tree = &mut *self.shelf().tree.borrow_mut();
            if with_files { tree.sync_all() } else { tree.sync_names(folder) }
        }
        self.tell(|| format!("real sync of directory {folder}, with files {with_files}"));
        self.count(|c| c.directories += 1);
        self.point();
        self.is_slow();
    }

    /// Syncs a directory, and before it these files, which its log has as a whole.
    pub fn destages_folder(&self, folder: usize, files: &[Captured]) {
        if self.has(Planted::RetiredUnsynced) {
            return;
        }
        for captured in files.iter().filter(|_| !self.has(Planted::RetiredWithoutFiles)) {
            let file = self.shelf().tree.borrow().by_handle(&captured.handle);
            // Otherwise its last name is gone.
            file.iter().for_each(|file| self.syncs_file(*file));
        }
        self.syncs_folder(folder, false);
    }

    /// Disks are slow: others go on meanwhile.
    fn is_slow(&self) {
        if self.rng.one_in(4) {
            self.give_way();
        }
    }

    /// A sync was acknowledged.
    pub fn acknowledged(&self, due: &Due) {
        self.tell(|| "... acknowledged".into());
        self.count(|c| c.acknowledged += 1);
        self.shelf().ledger.borrow_mut().acknowledge(due);
        self.point();
    }

    /// The power is off: what the file system has is what the disk had.
    pub fn lose_names(&self) {
        let Some(shelf) = &self.shelf else { return };
        let left = shelf.tree.borrow().cut(&self.rng);
        *shelf.tree.borrow_mut() = left;
        shelf.slots.borrow_mut().clear();
        shelf.asked.borrow_mut().clear();
        shelf.ledger.borrow_mut().all_died();
    }

    /// A recovery is over: judges what it left, and takes that for what there is.
    pub fn recovered_names(&self) {
        let Some(shelf) = &self.shelf else { return };
        let verdict = shelf.ledger.borrow().check(&shelf.tree.borrow());
        shelf.ledger.borrow_mut().recovered(&shelf.tree.borrow());
        if let Err(why) = verdict {
            self.violate(format!("after recovery: {why}"));
        }
    }
}
