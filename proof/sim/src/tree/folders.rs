//! Directories in directories.

use super::{Names, Tree};

impl Tree {
    /// Directories that there ever were.
    pub fn folders(&self) -> usize {
        self.seen.len()
    }

    /// Those that are there from the beginning.
    pub fn tops(&self) -> std::ops::Range<usize> {
        0..self.tops
    }

    /// A new directory gets a name.
    pub fn make_folder(&mut self, folder: usize, name: &[u8], mode: u32) -> usize {
        let inode = self.new_inode(mode);
        if let Some(made) = self.inodes.get_mut(&inode) {
            made.folder = Some(self.seen.len());
        }
        self.seen.push(Names::new());
        self.durable.push(Names::new());
        self.changed.push(0);
        // Last, as this sets its time.
        self.lead(vec![(folder, name.to_vec(), Some(inode))]);
        inode
    }

    /// The directory at a name.
    pub fn folder_at(&self, folder: usize, name: &[u8]) -> Option<usize> {
        self.inode(self.find(folder, name)?)?.folder
    }

    /// The inode of a directory that somebody can come to, or has open.
    pub fn inode_of(&self, folder: usize) -> Option<usize> {
        self.inodes.iter().find(|(_, inode)| inode.folder == Some(folder)).map(|(inode, _)| *inode)
    }

    /// Where a directory is: the one above it, and its name there.
    pub fn place_of(&self, folder: usize) -> Option<(usize, Vec<u8>)> {
        self.name_of(self.inode_of(folder)?)
    }

    /// False if it was removed.
    pub fn is_there(&self, folder: usize) -> bool {
        self.tops().contains(&folder) || self.place_of(folder).is_some()
    }

    /// All that are there, those above before those in them.
    pub fn there(&self) -> Vec<usize> {
        let mut there: Vec<usize> = self.tops().collect();
        let mut at = 0;
        while let Some(folder) = there.get(at).copied() {
            let inner = self.seen[folder].values().filter_map(|inode| self.inode(*inode)?.folder);
            there.extend(inner);
            at += 1;
        }
        there
    }

    /// True if a directory is another one, or below that.
    pub fn is_within(&self, folder: usize, other: usize) -> bool {
        let mut at = Some(folder);
        while let Some(folder) = at.filter(|folder| *folder != other) {
            at = self.place_of(folder).map(|(above, _)| above);
        }
        at.is_some()
    }
}
