//! Names: directories with live records are brought to the state in the log, before any content is replayed.
//!
//! ```text
//! group     directories between which files moved, and their live changes, in order   reads only
//! plan      a decision for each name and each file                                   reads only
//! apply     files made, filled, put at their names    may be cut anywhere: a second run finds what the first one did
//! ```
//!
//! The file system keeps a prefix of the changes of names (ext4 with a journal, XFS; on other file systems none are
//! logged), and the log has at least that prefix. So it is enough to know where each name leads in the end, and where
//! it led before: whatever prefix is there, each name is where one of these changes left it. Files are distinguished
//! by their handles, never by their names. [`plan`] is the decision table.

mod group;
mod history;
mod plan;
mod real;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::io;

use super::ground::Ground;
use super::scan::{Found, payload};
use super::target::{At, Locate, NameSpace, Unwritable};
use super::unresolved::{Unresolved, give_up};
use super::{RecoverError, Report, Scan};
use crate::format::{Handle, NameChange};
use crate::pool::Pool;

use group::{Changes, Group};
use plan::Step;
pub use real::RealDirectory;

/// What a directory's records tell about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing that would not show on the disk.
    Not,
    /// It was removed.
    Gone,
    /// It was removed, unless the disk has it.
    PerhapsGone,
    /// The disk does not have the file. It is made again, with this name in the end.
    Again(At),
}

/// Directories whose names can be replayed for certain.
pub(super) struct Names<N> {
    groups: Vec<Group<N>>,
}

impl<N: NameSpace> Names<N> {
    /// Reads all changes and decides. Undecidable cases are in `unresolved`.
    pub(super) fn of<L: Locate<Names = N>>(
        ground: &Ground<'_, L>,
        report: &mut Report,
    ) -> Result<Self, RecoverError> {
        let (mut groups, mut unresolved) = (Vec::new(), Vec::new());
        for changes in Changes::grouped(ground)? {
            let path = |slot: u32| Some(ground.path(ground.files.get(&slot)?));
            let records = changes.records();
            match Group::of(ground, changes)? {
                Ok(group) => {
                    report.files.extend(group.spaces.values().map(|space| space.path.clone()));
                    groups.push(group);
                }
                Err((slot, Unwritable::Lost(why) | Unwritable::Unseen(why))) => {
                    unresolved.push(Unresolved { path: path(slot).unwrap_or_default(), records, why });
                }
                Err((_, Unwritable::Dropped(why))) => report.dropped.push(why),
            }
        }
        give_up(unresolved, ground.options, report)?;
        Ok(Self { groups })
    }

    /// What the log of a file's directory tells about the file.
    pub(super) fn knows(&self, file: &Handle) -> Known {
        for group in &self.groups {
            if group.history.is_gone(file) {
                return Known::Gone;
            }
            if group.history.is_perhaps_gone(file) {
                return Known::PerhapsGone;
            }
            if let Some(at) = group.makes_again(file) {
                return Known::Again(at);
            }
        }
        Known::Not
    }

    /// The directory of a name.
    pub(super) fn directory(&self, at: &At) -> io::Result<&N> {
        let found = self.groups.iter().find_map(|group| group.names(at.directory).ok());
        found.ok_or_else(|| io::Error::other("its directory was not found"))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Brings every directory to the state in the log.
    pub(super) fn replay(&self, pool: &Pool, scan: &Scan, report: &mut Report) -> Result<(), RecoverError> {
        let steps = |is_due: fn(&Step) -> bool| {
            let all =
                self.groups.iter().flat_map(|group| group.plan.steps.iter().map(move |step| (group, step)));
            all.filter(move |(_, step)| is_due(step))
        };
        // How many in a row could not be taken yet.
        let (mut due, mut put_off): (VecDeque<_>, usize) = (steps(|step| !step.is_of_names()).collect(), 0);
        let mut staying = BTreeSet::new();
        while let Some((group, step)) = due.pop_front() {
            match group.apply(pool, scan, step, report) {
                Err(error) if step.waits(&error) && put_off < due.len() => {
                    due.push_back((group, step));
                    put_off += 1;
                }
                Err(error) => match step.stays(&error) {
                    Some(directory) => {
                        staying.insert(directory);
                        put_off = 0;
                    }
                    None => return Err(group.failed(step, error)),
                },
                Ok(()) => put_off = 0,
            }
        }
        for (group, step) in steps(Step::is_of_names).filter(|(_, step)| !step.puts(&staying)) {
            group.apply(pool, scan, step, report).map_err(|error| group.failed(step, error))?;
        }
        report.live += self.groups.iter().map(|group| group.records).sum::<u64>();
        Ok(())
    }

    /// Makes all directories durable, replayed or not.
    pub(super) fn sync(&self, replayed: bool) -> Result<(), RecoverError> {
        for group in &self.groups {
            for at in group.history.contents().filter(|_| !replayed) {
                let synced = group.names(at.directory).and_then(|names| names.sync_file(&at.name));
                synced.map_err(|error| group.failed_in(at.directory, "sync", error))?;
            }
            // The files that the names lead to must be durable before the places are cleared: a file may exist nowhere
            // else.
            let wanted: Vec<Handle> = group.history.wanted().collect();
            let each = |act: &dyn Fn(&N) -> io::Result<()>| {
                group.spaces.iter().try_for_each(|(slot, space)| {
                    space
                        .names
                        .get()
                        .map_or(Ok(()), act)
                        .map_err(|error| group.failed_in(*slot, "sync", error))
                })
            };
            each(&|names| names.sync())?;
            each(&|names| names.clear(&wanted))?;
        }
        Ok(())
    }

    /// The log is closed.
    pub(super) fn end(&self) {
        for group in &self.groups {
            for (slot, space) in &group.spaces {
                let here = group.history.names.keys().filter(|at| at.directory == *slot);
                let names: Vec<&[u8]> = here.map(|at| at.name.as_slice()).collect();
                space.names.get().into_iter().for_each(|is| is.end(&names));
            }
        }
    }
}

impl<N: NameSpace> Group<N> {
    fn apply(&self, pool: &Pool, scan: &Scan, step: &Step, report: &mut Report) -> io::Result<()> {
        match step {
            Step::Make { file, place, attributes, target } => {
                self.names(*place)?.make(file, attributes, target.as_deref())?;
                if attributes.is_directory() { self.open_again(file, *place) } else { Ok(()) }
            }
            Step::Fill { file, place, at, lsn } => {
                let parts = scan.live.get(*lsn).ok_or_else(|| io::Error::other("its record is gone"))?;
                let bytes = whole(pool, parts)?;
                let (NameChange::Content { data, attributes, .. }
                | NameChange::Holds { data, attributes, .. }) = NameChange::decode(&bytes)
                    .ok_or_else(|| io::Error::other("its record changed while it was read"))?
                else {
                    return Err(io::Error::other("another record has taken its record's place"));
                };
                report.bytes += data.len() as u64;
                let names = self.names(at.as_ref().map_or(*place, |at| at.directory))?;
                names.fill(file, at.as_ref().map(|at| at.name.as_slice()), data, &attributes)
            }
            Step::Keep { file, place, at } => {
                self.names(*place)?.keep(file, self.names(at.directory)?, &at.name)
            }
            Step::Put { file, place, to } => {
                self.names(to.directory)?.put(file, self.names(*place)?, &to.name)
            }
            Step::Remove { at } => self.names(at.directory)?.remove(&at.name),
        }
    }

    fn failed(&self, step: &Step, error: io::Error) -> RecoverError {
        self.failed_in(step.place(), "replay the names in", error)
    }

    fn failed_in(&self, directory: u32, doing: &'static str, error: io::Error) -> RecoverError {
        let file = self.spaces.get(&directory).map(|space| space.path.clone()).unwrap_or_default();
        RecoverError::Io { file, doing, error }
    }
}

/// A record's payload.
fn whole(pool: &Pool, parts: &[Found]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend(payload(pool, part)?);
    }
    Ok(bytes)
}
