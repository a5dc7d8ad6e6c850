//! Directories between which files moved or got names, and those that the disk never had, with the ones above them: what
//! happens in one depends on the others.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use super::history::History;
use super::plan::{Plan, Step};
use super::{At, whole};
use crate::file::UNBORN;
use crate::format::{Elsewhere, Handle, NameChange};
use crate::recover::ground::Ground;
use crate::recover::report::RecoverError;
use crate::recover::scan::are_names;
use crate::recover::target::{Here, Locate, Look, NameSpace, Unwritable};
use crate::table::FileEntry;

/// The live changes of a group, before the directories are looked up.
#[derive(Default)]
pub(super) struct Changes {
    directories: BTreeSet<u32>,
    /// The records, in order, each with its directory.
    changes: Vec<(u64, u32)>,
}

/// A group that can be replayed.
pub(super) struct Group<N> {
    pub spaces: BTreeMap<u32, Space<N>>,
    pub history: History,
    pub plan: Plan,
    pub records: u64,
}

/// One directory.
pub(super) struct Space<N> {
    /// Once it is there: one that the disk never had is made again.
    pub names: OnceCell<N>,
    /// Whose place that takes.
    unborn: Option<Handle>,
    pub path: PathBuf,
    owner: u32,
}

impl Changes {
    /// All live changes of names, grouped by directories that depend on each other.
    pub(super) fn grouped<L>(ground: &Ground<'_, L>) -> Result<Vec<Self>, RecoverError> {
        let Ground { pool, scan, files, .. } = *ground;
        let mut together = Together::default();
        let mut changes = Vec::new();
        let unborn: BTreeMap<Handle, u32> =
            files.iter().filter_map(|(slot, entry)| Some((unborn(entry)?, *slot))).collect();
        for parts in scan.live.records().filter(|parts| are_names(parts)) {
            let (slot, lsn) = (parts[0].header.slot, parts[0].header.lsn);
            let bytes = whole(pool, parts).map_err(|error| unreadable(slot, error))?;
            let change = decoded(slot, &bytes)?;
            if let Some(below) = change.file().and_then(|file| unborn.get(&file)) {
                together.join(slot, *below);
            }
            let other = change.elsewhere(lsn);
            let other = other.filter(|(other, lsn)| is_behind(files, *other, *lsn));
            together.join(slot, other.map_or(slot, |(other, _)| other.slot));
            changes.push((lsn, slot));
        }
        let mut groups: BTreeMap<u32, Self> = BTreeMap::new();
        for directory in together.all() {
            groups.entry(together.first(directory)).or_default().directories.insert(directory);
        }
        for change in changes {
            groups.entry(together.first(change.1)).or_default().changes.push(change);
        }
        Ok(groups.into_values().collect())
    }

    /// How many records there are.
    pub(super) fn records(&self) -> u64 {
        self.changes.len() as u64
    }
}

/// Directories that depend on each other: each leads to another one, and finally to the first of its group.
#[derive(Default)]
struct Together(BTreeMap<u32, u32>);

impl Together {
    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.first(one), self.first(other));
        self.0.insert(one, one);
        self.0.insert(other, one);
    }

    fn first(&self, mut directory: u32) -> u32 {
        while let Some(next) = self.0.get(&directory).filter(|next| **next != directory) {
            directory = *next;
        }
        directory
    }

    fn all(&self) -> impl Iterator<Item = u32> {
        self.0.keys().copied()
    }
}

impl<N: NameSpace> Group<N> {
    /// Looks the directories up and decides; without a replay there is nothing to do. The inner error: for which
    /// directory this is impossible.
    pub(super) fn of<L: Locate<Names = N>>(
        ground: &Ground<'_, L>,
        changes: Changes,
    ) -> Result<Result<Self, (u32, Unwritable)>, RecoverError> {
        let Ground { pool, scan, files, options, .. } = *ground;
        let mut history = History::default();
        for (lsn, slot) in &changes.changes {
            let parts = scan.live.get(*lsn).unwrap_or_default();
            let bytes = whole(pool, parts).map_err(|error| unreadable(*slot, error))?;
            history.add(*slot, *lsn, &decoded(*slot, &bytes)?, |other, lsn| is_behind(files, other, lsn));
        }
        let mut spaces = BTreeMap::new();
        for &slot in &changes.directories {
            match Space::of(ground, slot, &history) {
                Ok(space) => drop(spaces.insert(slot, space)),
                Err(why) => return Ok(Err((slot, why))),
            }
        }
        let mut group = Self { spaces, history, plan: Plan::default(), records: changes.records() };
        group.open_made();
        if options.replays(pool) {
            match Plan::of(&group.history, &group) {
                Ok(plan) => group.plan = plan,
                Err(conflict) => {
                    return Ok(Err((conflict.at().directory, conflict.into())));
                }
            }
        }
        Ok(Ok(group))
    }

    /// Opens directories that a run which was cut has made again: they have their names, or are at their places still, and what it
    /// moved there is nowhere else. Those below others come after these.
    fn open_made(&self) {
        let open = |space: &Space<N>| {
            let file = space.unborn.filter(|_| space.names.get().is_none())?;
            let (at, names) =
                self.names_of(file).find_map(|at| Some((at, self.names(at.directory).ok()?)))?;
            let is_it = |here: &Here| self.history.identity(at, here) == file;
            let is_put = names.look(&at.name).ok()?.as_ref().is_some_and(is_it);
            space.names.set(names.inner(&file, is_put.then_some(&at.name)).ok()?).ok()
        };
        while self.spaces.values().any(|space| open(space).is_some()) {}
    }

    /// A directory was made again, at its place in this one.
    pub(super) fn open_again(&self, file: &Handle, place: u32) -> io::Result<()> {
        let is_it = |space: &&Space<N>| space.unborn == Some(*file) && space.names.get().is_none();
        let Some(space) = self.spaces.values().find(is_it) else { return Ok(()) };
        // It was empty a moment ago.
        let _ = space.names.set(self.names(place)?.inner(file, None)?);
        Ok(())
    }

    /// The names that lead to a file in the end.
    fn names_of(&self, file: Handle) -> impl Iterator<Item = &At> {
        self.history.names.iter().filter(move |(_, is)| is.now == Some(file)).map(|(at, _)| at)
    }

    /// Where a file will be that is made again, or was made again by a run that was cut.
    pub(super) fn makes_again(&self, file: &Handle) -> Option<At> {
        let at = self.names_of(*file).next()?;
        let is_made = |step: &Step| matches!(step, Step::Make { file: made, .. } if made == file);
        let is_there = || {
            let names = self.names(at.directory).ok();
            let here = names.and_then(|names| names.look(&at.name).ok()?);
            here.is_some_and(|here| self.history.identity(at, &here) == *file)
        };
        (self.plan.steps.iter().any(is_made) || is_there()).then(|| at.clone())
    }

    /// One of its directories. One that is to be made again is [not found](io::ErrorKind::NotFound) before.
    pub(super) fn names(&self, directory: u32) -> io::Result<&N> {
        let space =
            self.spaces.get(&directory).ok_or_else(|| io::Error::other("its directory was not found"))?;
        let is_not_made = || io::Error::new(io::ErrorKind::NotFound, "its directory was not made");
        space.names.get().ok_or_else(is_not_made)
    }

    fn opened(&self, directory: u32) -> Option<&N> {
        self.spaces.get(&directory)?.names.get()
    }
}

impl<N: NameSpace> Space<N> {
    /// The directory in this slot. One that the disk never had, and that has a name in the end, is there later.
    fn of<L: Locate<Names = N>>(
        ground: &Ground<'_, L>,
        slot: u32,
        history: &History,
    ) -> Result<Self, Unwritable> {
        let Ground { pool, locate, roots, files, options, .. } = *ground;
        let entry = files.get(&slot).ok_or_else(|| "it is not in the table of files".to_owned())?;
        let root = roots.get(&entry.root);
        let is_wanted = |file: &Handle| history.wanted().any(|wanted| wanted == *file);
        let space = |names, unborn, path| {
            let owner = root.map_or(0, |root| root.uid);
            Self { names, unborn, path, owner }
        };
        match locate.directory(root, entry) {
            Ok(names) => {
                let path = names.path();
                Ok(space(OnceCell::from(names), None, path))
            }
            Err(unseen @ Unwritable::Unseen(_)) => Err(unseen),
            Err(why) => match unborn(entry).filter(|file| options.replays(pool) && is_wanted(file)) {
                Some(file) => Ok(space(OnceCell::new(), Some(file), ground.path(entry))),
                None => Err(why),
            },
        }
    }
}

/// How records refer to a directory that the disk may lack.
fn unborn(entry: &FileEntry) -> Option<Handle> {
    let is_unborn = entry.is_directory && entry.watermark == UNBORN;
    Handle::new(entry.identity.kind, &entry.identity.handle).filter(|_| is_unborn)
}

impl<N: NameSpace> Look for Group<N> {
    fn look(&self, at: &At) -> Result<Option<Here>, String> {
        // Nothing is in one that is made again later.
        self.opened(at.directory).map_or(Ok(None), |names| names.look(&at.name))
    }

    fn is_kept(&self, directory: u32, file: &Handle) -> Result<bool, String> {
        self.opened(directory).map_or(Ok(false), |names| names.is_kept(file))
    }

    fn name_of(&self, directory: u32, file: &Handle) -> Result<Option<Vec<u8>>, String> {
        self.opened(directory).map_or(Ok(None), |names| names.name_of(file))
    }

    fn owner(&self, directory: u32) -> u32 {
        self.spaces.get(&directory).map_or(0, |space| space.owner)
    }

    fn is_full(&self, at: &At) -> bool {
        self.opened(at.directory).is_some_and(|names| names.is_full(&at.name))
    }
}

/// True if the names of another directory may lack the change with this LSN: it is still the same directory, and has
/// not been synced since.
fn is_behind(files: &BTreeMap<u32, FileEntry>, other: Elsewhere, lsn: u64) -> bool {
    let entry = files.get(&other.slot).filter(|entry| entry.generation == other.generation);
    entry.is_some_and(|entry| lsn > entry.watermark)
}

fn decoded(slot: u32, bytes: &[u8]) -> Result<NameChange<'_>, RecoverError> {
    let change = NameChange::decode(bytes);
    change.ok_or_else(|| unreadable(slot, io::Error::other("the record is from a later version")))
}

fn unreadable(slot: u32, error: io::Error) -> RecoverError {
    RecoverError::Io { file: format!("slot {slot}").into(), doing: "read the names of", error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_together_however_they_came_to_know_each_other() {
        let mut together = Together::default();
        for (one, other) in [(1, 1), (2, 3), (4, 5), (5, 3), (6, 6), (5, 2)] {
            together.join(one, other);
        }
        let groups = |of: &[u32]| of.iter().map(|slot| together.first(*slot)).collect::<BTreeSet<_>>().len();
        assert_eq!((groups(&[2, 3, 4, 5]), groups(&[1, 2, 6])), (1, 3));
        assert_eq!(together.all().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    }
}
