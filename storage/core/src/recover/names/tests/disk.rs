//! The disk: names, inodes, and what a recovery keeps meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use super::super::history::History;
use super::super::plan::{Conflict, Plan, Step};
use super::program::{Event, OLD, OWNER, at, file, handle, is_directory, target};
use crate::format::Handle;
use crate::recover::target::{At, Here, Look};

/// The handles of files that a recovery makes begin here.
const MADE_AGAIN: u32 = 1000;

/// What cannot be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unseen {
    Kept,
    Name,
}

/// A directory, and the files that are kept for a recovery.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    pub(super) names: BTreeMap<At, usize>,
    /// The places of files, each with its directory.
    pub(super) kept: BTreeMap<(u32, Handle), usize>,
    pub(super) inodes: Vec<Inode>,
    pub(super) owner: u32,
    /// Directories with something in them.
    pub(super) full: BTreeSet<At>,
    /// Something in it cannot be looked at: what is kept there, or a name that the log does not have.
    pub(super) unseen: Option<Unseen>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Inode {
    is: Handle,
    /// Its own handle, if it was made again.
    pub(super) itself: Handle,
    /// It was made again.
    pub(super) is_another: bool,
    pub(super) content: Option<u8>,
}

impl Look for Disk {
    fn look(&self, at: &At) -> Result<Option<Here>, String> {
        let here = |inode: &Inode| {
            let target = target(file(&inode.is)).map(|says| says.to_vec());
            // Symbolic links carry no mark.
            let stands_for = (inode.is_another && target.is_none()).then_some(inode.is);
            Here { itself: inode.itself, stands_for, target, has_others: false }
        };
        Ok(self.names.get(at).map(|inode| here(&self.inodes[*inode])))
    }

    fn is_kept(&self, directory: u32, file: &Handle) -> Result<bool, String> {
        if self.unseen == Some(Unseen::Kept) {
            return Err("is not seen".into());
        }
        Ok(self.kept.get(&(directory, *file)).is_some_and(|inode| !self.inodes[*inode].is_another))
    }

    fn name_of(&self, directory: u32, file: &Handle) -> Result<Option<Vec<u8>>, String> {
        if self.unseen == Some(Unseen::Name) {
            return Err("is not seen".into());
        }
        let is_it = |inode: usize| self.inodes[inode].is == *file && !self.inodes[inode].is_another;
        let mut here = self.names.iter().filter(|(at, _)| at.directory == directory);
        Ok(here.find(|(_, inode)| is_it(**inode)).map(|(at, _)| at.name.clone()))
    }

    fn owner(&self, _: u32) -> u32 {
        self.owner
    }

    fn is_full(&self, at: &At) -> bool {
        self.full.contains(at)
    }
}

impl Disk {
    /// The disk after these changes of names.
    pub(super) fn after(changes: &[&Event]) -> Self {
        let mut disk = Self { owner: OWNER, ..Self::default() };
        OLD.iter().for_each(|(at, file)| disk.leads(*at, Some(*file)));
        for change in changes {
            match change {
                Event::Change(all) => all.iter().for_each(|(at, file)| disk.leads(*at, *file)),
                Event::Committed(file, byte) => {
                    let inode = disk.inodes.iter_mut().find(|inode| inode.is == handle(*file));
                    inode.into_iter().for_each(|inode| inode.content = Some(*byte));
                }
                Event::Record(_) | Event::Destaged(_) => {}
            }
        }
        disk
    }

    fn leads(&mut self, place: usize, file: Option<u32>) {
        self.names.remove(&at(place));
        let Some(file) = file else { return };
        let known = self.inodes.iter().position(|inode| inode.is == handle(file));
        let inode = known.unwrap_or_else(|| self.make(handle(file), false));
        self.names.insert(at(place), inode);
    }

    fn is_directory(&self, inode: usize) -> bool {
        is_directory(file(&self.inodes[inode].is))
    }

    pub(super) fn make(&mut self, is: Handle, is_another: bool) -> usize {
        let itself = if is_another { handle(MADE_AGAIN + self.inodes.len() as u32) } else { is };
        self.inodes.push(Inode { is, itself, is_another, content: None });
        self.inodes.len() - 1
    }

    fn apply(&mut self, step: &Step, history: &History, contents: &BTreeMap<u64, u8>) {
        let is_wanted = |is: Handle| history.wanted().any(|wanted| wanted == is);
        match step {
            Step::Make { file, place, .. } => {
                let inode = self.make(*file, true);
                self.kept.insert((*place, *file), inode);
            }
            Step::Keep { file, place, at } => {
                self.kept.insert((*place, *file), self.names[at]);
                if self.is_directory(self.names[at]) {
                    self.names.remove(at);
                }
            }
            Step::Fill { file, place, at, lsn } => {
                let inode = at.as_ref().map_or_else(|| self.kept[&(*place, *file)], |at| self.names[at]);
                self.inodes[inode].content = Some(contents[lsn]);
            }
            Step::Put { file, place, to } => {
                let inode = self.kept[&(*place, *file)];
                let over = self.names.insert(to.clone(), inode);
                self.is_lost(over, is_wanted);
                if self.is_directory(inode) {
                    self.kept.remove(&(*place, *file));
                }
            }
            Step::Remove { at } => {
                let removed = self.names.remove(at);
                self.is_lost(removed, is_wanted);
            }
        }
    }

    /// A directory has one name.
    fn is_lost(&self, inode: Option<usize>, is_wanted: impl Fn(Handle) -> bool) {
        let is_lost = |inode: usize| self.is_directory(inode) && is_wanted(self.inodes[inode].is);
        assert!(!inode.is_some_and(is_lost), "a directory is lost");
    }

    /// Recovers up to a step, or to the end.
    pub(super) fn recover(
        &mut self,
        history: &History,
        contents: &BTreeMap<u64, u8>,
        steps: usize,
    ) -> Result<bool, Conflict> {
        let plan = Plan::of(history, self)?;
        plan.steps.iter().take(steps).for_each(|step| self.apply(step, history, contents));
        let is_over = steps > plan.steps.len();
        if is_over {
            self.kept.clear();
        }
        Ok(is_over)
    }

    pub(super) fn seen(&self) -> BTreeMap<At, u32> {
        self.names.iter().map(|(name, inode)| (name.clone(), file(&self.inodes[*inode].is))).collect()
    }
}
