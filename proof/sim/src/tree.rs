//! The names of a simulated file system: directories, inodes, and a journal that keeps changes of names in order.
//!
//! ```text
//! seen      what every process sees
//! journal   the changes since the last commit, in order; a commit makes the first ones of them durable
//! durable   what a power cut leaves for certain; it may leave any first part of the journal as well
//! ```
//!
//! An fsync of a file or a directory commits the journal up to the last change that concerns it, and no further: ext4
//! and XFS promise no more. A file's bytes are a [`Disk`] of its own, so unsynced bytes may be lost, or partly there.
//!
//! Directories are numbered as they are made, and no number is used again: the first ones are there from the beginning, and have no
//! name; each other one is an inode with a name. One that was removed has nothing in it.
//!
//! Not simulated: errors of the disk, attributes that change later, inodes whose size is in the journal before their
//! bytes are on disk ([`Disk`] allows more than that), quotas, other file systems than those that keep the order.

mod cut;
mod folders;
mod inode;

use std::collections::BTreeMap;

use seawall_core::format::Handle;

use crate::Disk;

pub use inode::Inode;

/// A name.
pub type Name = Vec<u8>;
/// What the names of a directory lead to: numbers of inodes in the simulator, which are never used again.
pub type Names = BTreeMap<Name, usize>;

/// A change of one name: in which directory, which one, and what it leads to from now on.
pub type Lead = (usize, Name, Option<usize>);

/// An entry of the journal, which a power cut keeps or loses as a whole.
#[derive(Clone)]
enum Change {
    Names(Vec<Lead>, Vec<usize>),
    Mark(usize, Option<Handle>),
}

/// The file system.
pub struct Tree {
    inodes: BTreeMap<usize, Inode>,
    /// Inodes that there ever were.
    made: usize,
    /// Directories that are there from the beginning.
    tops: usize,
    seen: Vec<Names>,
    durable: Vec<Names>,
    journal: Vec<Change>,
    /// Change times of the directories.
    changed: Vec<u64>,
    /// Counts changes of directories, and how many of them fall into one tick of the kernel's clock.
    clock: (u64, u64),
    /// Generations that were given out.
    generations: u32,
    /// The unit in which its disk writes.
    sector: usize,
    /// True once anything was changed.
    pub is_touched: bool,
}

impl Tree {
    /// Empty directories.
    pub fn of(folders: usize, sector: usize, tick: u64) -> Self {
        Self {
            inodes: BTreeMap::new(),
            made: 0,
            tops: folders,
            seen: vec![Names::new(); folders],
            durable: vec![Names::new(); folders],
            journal: Vec::new(),
            changed: vec![1; folders],
            clock: (1, tick),
            generations: 0,
            sector,
            is_touched: false,
        }
    }

    /// The names of a directory.
    pub fn names(&self, folder: usize) -> &Names {
        &self.seen[folder]
    }

    /// What a name leads to.
    pub fn find(&self, folder: usize, name: &[u8]) -> Option<usize> {
        self.seen[folder].get(name).copied()
    }

    /// An inode that has a name, or that somebody has open.
    pub fn inode(&self, inode: usize) -> Option<&Inode> {
        self.inodes.get(&inode)
    }

    /// How many names an inode has.
    pub fn links(&self, inode: usize) -> u64 {
        self.seen.iter().flat_map(Names::values).filter(|is| **is == inode).count() as u64
    }

    /// A name of an inode: its directory, and the name.
    pub fn name_of(&self, inode: usize) -> Option<(usize, Name)> {
        let all = self.seen.iter().enumerate();
        let mut found =
            all.flat_map(|(folder, names)| names.iter().map(move |(name, is)| (folder, name, *is)));
        found.find(|(_, _, is)| *is == inode).map(|(folder, name, _)| (folder, name.clone()))
    }

    /// The inode with this handle.
    pub fn by_handle(&self, handle: &Handle) -> Option<usize> {
        let mut all = self.inodes.iter();
        let found = all.find(|(_, inode)| !inode.is_free && inode.handle() == *handle);
        found.map(|(index, _)| *index)
    }

    /// When a name in a directory last changed.
    pub fn changed(&self, folder: usize) -> u64 {
        self.changed[folder]
    }

    /// The directory's change time is now.
    pub fn touch(&mut self, folder: usize) {
        self.clock.0 += 1;
        // Several changes may fall into one tick.
        self.changed[folder] = (self.clock.0 / self.clock.1 + 1) * 1_000_000;
    }

    /// A new file gets a name that leads to nothing. Its number may be that of a file that is gone.
    pub fn make(&mut self, folder: usize, name: &[u8], mode: u32) -> usize {
        let inode = self.new_inode(mode);
        self.lead(vec![(folder, name.to_vec(), Some(inode))]);
        inode
    }

    fn new_inode(&mut self, mode: u32) -> usize {
        self.generations += 1;
        let is_taken =
            |number: &u32| self.inodes.values().any(|inode| inode.number == *number && !inode.is_free);
        let number = (1..).find(|number| !is_taken(number)).unwrap_or_default();
        let disk = Disk::holding(Vec::new()).on(self.sector);
        let inode = self.made;
        self.made += 1;
        self.inodes.insert(inode, Inode::new(number, self.generations, mode, disk));
        inode
    }

    /// A new symbolic link gets a name. Recovery may make it in place of another one.
    pub fn point(&mut self, folder: usize, name: &[u8], target: &[u8], stands_for: Option<Handle>) -> usize {
        let link = self.make(folder, name, 0o777);
        if let Some(inode) = self.inodes.get_mut(&link) {
            inode.target = Some(target.to_vec());
            (inode.stood_for, inode.durable_stood_for) = (stands_for, stands_for);
        }
        link
    }

    /// Names lead elsewhere, all of them in one step.
    pub fn lead(&mut self, leads: Vec<Lead>) {
        let mut concerned: Vec<usize> = leads.iter().filter_map(|(_, _, inode)| *inode).collect();
        for (folder, name, inode) in &leads {
            let before = match inode {
                Some(inode) => self.seen[*folder].insert(name.clone(), *inode),
                None => self.seen[*folder].remove(name),
            };
            concerned.extend(before);
            self.touch(*folder);
        }
        // The kernel sets it for whatever gets or loses a name.
        let itself = |inode: &usize| self.inodes.get(inode)?.folder;
        let moved: Vec<usize> = concerned.iter().filter_map(itself).collect();
        moved.into_iter().for_each(|folder| self.touch(folder));
        self.is_touched = true;
        self.journal.push(Change::Names(leads, concerned));
        self.prune();
    }

    /// Sets or removes the attribute that says which file an inode stands for.
    pub fn mark(&mut self, inode: usize, mark: Option<Handle>) {
        if let Some(of) = self.inodes.get_mut(&inode) {
            of.mark = mark;
            of.stood_for = mark.or(of.stood_for);
            self.journal.push(Change::Mark(inode, mark));
        }
    }

    /// Changes the bytes of a file.
    pub fn write(&mut self, inode: usize, op: impl FnOnce(&mut Disk)) {
        self.is_touched = true;
        if let Some(inode) = self.inodes.get_mut(&inode) {
            op(&mut inode.disk);
        }
    }

    /// Opens a file, or closes it.
    pub fn open(&mut self, inode: usize, is_open: bool) {
        if let Some(of) = self.inodes.get_mut(&inode) {
            of.opens = if is_open { of.opens + 1 } else { of.opens.saturating_sub(1) };
        }
        self.prune();
    }

    /// fsync(2) of a file.
    pub fn sync(&mut self, inode: usize) {
        self.inodes.get_mut(&inode).into_iter().for_each(|inode| inode.disk.sync());
        self.commit(|change| match change {
            Change::Names(_, concerned) => concerned.contains(&inode),
            Change::Mark(of, _) => *of == inode,
        });
    }

    /// fsync(2) of a directory: of the names in it, and of its own.
    pub fn sync_names(&mut self, folder: usize) {
        let itself = self.inode_of(folder);
        let is_in = |change: &Change| match change {
            Change::Names(leads, concerned) => {
                leads.iter().any(|(of, _, _)| *of == folder)
                    || itself.is_some_and(|inode| concerned.contains(&inode))
            }
            Change::Mark(of, _) => itself == Some(*of),
        };
        self.commit(is_in);
    }

    /// syncfs(2).
    pub fn sync_all(&mut self) {
        self.inodes.values_mut().for_each(|inode| inode.disk.sync());
        self.commit(|_| true);
    }

    /// Makes the journal durable up to the last such change.
    fn commit(&mut self, is_last: impl Fn(&Change) -> bool) {
        let end = self.journal.iter().rposition(is_last).map_or(0, |last| last + 1);
        for change in self.journal.drain(..end) {
            apply(&mut self.durable, &mut self.inodes, change);
        }
        self.prune();
    }
}

/// A change is durable.
fn apply(durable: &mut [Names], inodes: &mut BTreeMap<usize, Inode>, change: Change) {
    match change {
        Change::Mark(inode, mark) => {
            if let Some(inode) = inodes.get_mut(&inode) {
                inode.durable_mark = mark;
                inode.durable_stood_for = mark.or(inode.durable_stood_for);
            }
        }
        Change::Names(leads, _) => {
            for (folder, name, inode) in leads {
                match inode {
                    Some(inode) => durable[folder].insert(name, inode),
                    None => durable[folder].remove(&name),
                };
            }
        }
    }
}
