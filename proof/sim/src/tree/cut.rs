//! What a power cut leaves of the tree, and which inodes nobody can come to any more.

use std::collections::{BTreeMap, BTreeSet};

use super::{Change, Inode, Names, Tree, apply};
use crate::{Disk, Rng, Survival};

impl Tree {
    /// The tree after a power cut now: the durable names and any first part of the journal, with the files that they
    /// lead to.
    pub fn cut(&self, rng: &Rng) -> Self {
        let kept = match rng.below(4) {
            0 => 0,
            1 => self.journal.len(),
            _ => rng.below(self.journal.len() as u64 + 1) as usize,
        };
        let mut names = self.durable.clone();
        let mut inodes = self.inodes.clone();
        for change in self.journal.iter().take(kept) {
            apply(&mut names, &mut inodes, change.clone());
        }
        let reached = reached(&names, &inodes, self.tops);
        inodes.retain(|inode, _| reached.contains(inode));
        for (folder, names) in names.iter_mut().enumerate().skip(self.tops) {
            if !inodes.values().any(|inode| inode.folder == Some(folder)) {
                names.clear();
            }
        }
        inodes.values_mut().for_each(|inode| self.lose(inode, rng));
        Self {
            inodes,
            seen: names.clone(),
            durable: names,
            journal: Vec::new(),
            changed: self.changed.clone(),
            is_touched: false,
            ..*self
        }
    }

    /// The power went: what this file is then.
    fn lose(&self, inode: &mut Inode, rng: &Rng) {
        let content = inode.disk.crash(Survival::draw(rng), rng);
        inode.disk = Disk::holding(content).on(self.sector);
        (inode.mark, inode.stood_for) = (inode.durable_mark, inode.durable_stood_for);
        (inode.opens, inode.is_free) = (0, false);
    }

    /// Forgets the inodes that neither a name nor a descriptor nor a power cut leads to; of those that only a power
    /// cut leads to the number is free.
    pub(super) fn prune(&mut self) {
        let all = |names: &[Names]| names.iter().flat_map(Names::values).copied().collect::<BTreeSet<_>>();
        let (seen, mut later) = (all(&self.seen), all(&self.durable));
        for change in &self.journal {
            if let Change::Names(leads, _) = change {
                later.extend(leads.iter().filter_map(|(_, _, inode)| *inode));
            }
        }
        let inodes: &mut BTreeMap<usize, Inode> = &mut self.inodes;
        inodes.retain(|index, inode| {
            let is_used = seen.contains(index) || inode.opens > 0;
            inode.is_free = !is_used;
            is_used || later.contains(index)
        });
    }
}

/// The inodes that names lead to, from the first directories on.
fn reached(names: &[Names], inodes: &BTreeMap<usize, Inode>, tops: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut folders: Vec<usize> = (0..tops).collect();
    while let Some(folder) = folders.pop() {
        let new: Vec<usize> =
            names[folder].values().copied().filter(|inode| reached.insert(*inode)).collect();
        folders.extend(new.iter().filter_map(|inode| inodes.get(inode)?.folder));
    }
    reached
}
