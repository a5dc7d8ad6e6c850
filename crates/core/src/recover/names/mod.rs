//! Names: directories with live records are made what the log says, before any content is replayed.
//!
//! ```text
//! history   the live changes of each directory, in order       reads only
//! plan      a decision for each name and each file             reads only
//! apply     files made, filled, put at their names             may be cut anywhere: a second run finds what the first one did
//! ```
//!
//! The file system keeps a prefix of the changes of names (ext4 with a journal, XFS; elsewhere none is logged), and the log
//! at least that prefix. So it is enough to know what each name leads to in the end, and what it led to before: whatever
//! prefix is there, each name is where one of these changes left it. Files are told apart by their handles, never by their
//! names. [`plan`] is the decision table.

mod history;
mod plan;
mod real;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;

use super::resolve::give_up;
use super::scan::{Found, are_names, payload};
use super::target::{Locate, NameSpace, Unwritable};
use super::{Options, RecoverError, Report, Scan, Unresolved};
use crate::format::{Handle, NameChange};
use crate::pool::Pool;
use crate::table::{FileEntry, RootEntry};

use history::History;
use plan::{Plan, Step};
pub use real::RealDirectory;

/// Why a file's name cannot be replayed.
impl From<plan::Conflict> for Unwritable {
    fn from(conflict: plan::Conflict) -> Self {
        Self::Lost(conflict.to_string())
    }
}

/// Directories whose names are known to be replayable.
pub(super) struct Names<N> {
    all: Vec<Named<N>>,
}

struct Named<N> {
    space: N,
    history: History,
    plan: Plan,
    records: u64,
}

impl<N: NameSpace> Names<N> {
    /// Reads all histories and decides. What cannot be decided is in `unresolved`.
    pub(super) fn of<L: Locate<Names = N>>(
        pool: &Pool,
        locate: &L,
        scan: &Scan,
        roots: &BTreeMap<u32, RootEntry>,
        files: &BTreeMap<u32, FileEntry>,
        options: Options,
        report: &mut Report,
    ) -> Result<Self, RecoverError> {
        let replays = options.replays(pool);
        let (mut all, mut unresolved) = (Vec::new(), Vec::new());
        for (slot, (history, records)) in histories(pool, scan)? {
            let Some(entry) = files.get(&slot) else { continue };
            let root = roots.get(&entry.root);
            let found = locate.directory(root, entry).and_then(|space| {
                let owner = root.map_or(0, |root| root.uid);
                let plan = if replays { Plan::of(&history, owner, &space) } else { Ok(Plan::default()) };
                Ok((plan?, space))
            });
            match found {
                Ok((plan, space)) => {
                    report.files.push(space.path());
                    all.push(Named { space, history, plan, records });
                }
                Err(Unwritable::Lost(why)) => {
                    let path = root.map(|root| root.path.clone()).unwrap_or_default().join(&entry.path);
                    unresolved.push(Unresolved { path, records, why });
                }
                Err(Unwritable::Dropped(why)) => report.dropped.push(why),
            }
        }
        give_up(unresolved, options, report)?;
        Ok(Self { all })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Makes every directory what the log says.
    pub(super) fn replay(&self, pool: &Pool, scan: &Scan, report: &mut Report) -> Result<(), RecoverError> {
        for named in &self.all {
            for step in &named.plan.steps {
                named
                    .apply(pool, scan, step, report)
                    .map_err(|error| named.failed("replaying names in", error))?;
            }
            report.live += named.records;
        }
        Ok(())
    }

    /// Makes all of it durable, replayed or not.
    pub(super) fn sync(&self, replayed: bool) -> Result<(), RecoverError> {
        for named in &self.all {
            let mut contents = named.history.contents().filter(|_| !replayed);
            let places: Vec<Handle> = named.history.wanted().collect();
            let synced = contents.try_for_each(|name| named.space.sync_file(name));
            synced
                .and_then(|()| named.space.sync(&places))
                .map_err(|error| named.failed("syncing", error))?;
        }
        Ok(())
    }

    /// The log is closed.
    pub(super) fn end(&self) {
        for named in &self.all {
            let names: Vec<&[u8]> = named.history.names.keys().map(Vec::as_slice).collect();
            named.space.end(&names);
        }
    }
}

impl<N: NameSpace> Named<N> {
    fn apply(&self, pool: &Pool, scan: &Scan, step: &Step, report: &mut Report) -> io::Result<()> {
        match step {
            Step::Make { file, attributes } => self.space.make(file, attributes),
            Step::Fill { file, at, lsn } => {
                let parts = scan.live.get(lsn).ok_or_else(|| io::Error::other("its record is gone"))?;
                let bytes = whole(pool, parts)?;
                match NameChange::decode(&bytes) {
                    Some(NameChange::Content { data, attributes, .. }) => {
                        report.bytes += data.len() as u64;
                        self.space.fill(file, at.as_deref(), data, &attributes)
                    }
                    _ => Err(io::Error::other("its record changed while it was read")),
                }
            }
            Step::Keep { file, name } => self.space.keep(file, name),
            Step::Put { file, name } => self.space.put(file, name),
            Step::Remove { name } => self.space.remove(name),
        }
    }

    fn failed(&self, doing: &'static str, error: io::Error) -> RecoverError {
        RecoverError::Io { file: self.space.path(), doing, error }
    }
}

/// The history of each directory with live records, and how many those are.
fn histories(pool: &Pool, scan: &Scan) -> Result<BTreeMap<u32, (History, u64)>, RecoverError> {
    let mut histories: BTreeMap<u32, (History, u64)> = BTreeMap::new();
    for (lsn, parts) in scan.live.iter().filter(|(_, parts)| are_names(parts)) {
        let slot = parts[0].header.slot;
        let (history, records) = histories.entry(slot).or_default();
        let unreadable = |error| RecoverError::Io {
            file: format!("slot {slot}").into(),
            doing: "reading names of",
            error,
        };
        let bytes = whole(pool, parts).map_err(unreadable)?;
        let change = NameChange::decode(&bytes);
        let change = change.ok_or_else(|| unreadable(io::Error::other("a record of a later version")))?;
        history.add(*lsn, &change);
        *records += 1;
    }
    Ok(histories)
}

/// A record's payload.
fn whole(pool: &Pool, parts: &[Found]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend(payload(pool, part)?);
    }
    Ok(bytes)
}
