//! What a trial leaves behind: one line of JSON for each thing that happened, in `out/lab/CASE.jsonl`.
//!
//! A line is written and synced as soon as its turn is over, so whatever ends the lab (Ctrl-C, a database that
//! vanished, a full disk, a power cut) leaves the finished part, and a report can be made of it. A line that was cut
//! off is ignored.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use seawall_awr::placement::Placement;
use serde::{Deserialize, Serialize};

use crate::case::Measure;
use crate::machine::Machine;

/// What was the matter in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// The recorder was stopped.
    Without,
    /// It ran.
    With,
    /// It was stopped: what [`Label::With`] is compared with, compared in the same way.
    Control,
}

/// A part of a load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    pub label: Label,
    /// Transactions a second.
    pub rate: f64,
}

/// Version of the lines.
pub const FORMAT: u32 = 1;

/// A line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// A trial begins.
    Run(Box<Run>),
    /// One of its configurations cannot be had on this machine.
    NotPossible {
        run: String,
        configuration: String,
        why: String,
    },
    Turn(Box<Turn>),
    /// It ended.
    End {
        run: String,
        how: String,
        finished: bool,
    },
}

/// A trial of a case.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    pub format: u32,
    /// Tells it from others of the same case.
    pub id: String,
    /// When it began.
    pub at: String,
    /// The text of the case's file, which a report is made from.
    pub text: String,
    pub rounds: usize,
    pub seconds: u64,
    pub quick: bool,
    pub machine: Machine,
    pub versions: BTreeMap<String, String>,
}

/// One configuration under load, once.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Turn {
    pub run: String,
    pub configuration: String,
    /// From 0.
    pub round: usize,
    pub at: String,
    /// By [`crate::case::Measure::key`].
    pub figures: BTreeMap<String, f64>,
    pub work: Work,
    pub time: DbTime,
    /// What a commit is worth here.
    pub durability: String,
    /// The pool's, as it names itself.
    pub medium: Option<String>,
    pub placement: BTreeMap<String, Placement>,
    /// Percent of all CPUs that others used just before the turn.
    pub others_cpu: f64,
    /// What limits the conclusions.
    pub notes: Vec<String>,
    /// If the server was killed afterwards, and its data checked.
    pub killed: Option<Killed>,
    /// If the load was cut into slices, with a recorder and without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Slice>,
}

impl Turn {
    /// Notes a figure.
    pub fn figure(&mut self, measure: Measure, value: f64) {
        self.figures.insert(measure.key().to_owned(), value);
    }
}

/// What was found after a kill under load.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Killed {
    /// Of all turns.
    pub acknowledged: u64,
    pub missing: u64,
}

/// What was done, to be compared with the other sides.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Work {
    /// As the load counted them.
    pub commits: f64,
    /// Rows inserted, updated, deleted.
    pub rows: f64,
    pub wal_bytes: f64,
    /// Full-page images among them.
    pub wal_images: f64,
}

/// Where the clients' time went.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DbTime {
    pub seconds: f64,
    /// Percent of it, by the names DBAs know, longest first.
    pub shares: Vec<(String, f64)>,
    /// Samples they are from.
    pub samples: u64,
}

impl DbTime {
    /// A wait's share in percent, if sessions were looked at.
    pub fn share(&self, wait: &str) -> Option<f64> {
        let found = self.shares.iter().find(|(name, _)| name == wait);
        (self.samples > 0).then(|| found.map_or(0.0, |(_, share)| *share))
    }
}

/// Where the lines are.
pub fn directory(out: &Path) -> PathBuf {
    out.join("lab")
}

/// The file of a case's lines.
pub struct Store {
    path: PathBuf,
}

impl Store {
    /// Of this case.
    pub fn of(out: &Path, case: &str) -> Result<Self> {
        let dir = directory(out);
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        Ok(Store { path: dir.join(format!("{case}.jsonl")) })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line; afterwards it is on the disk.
    pub fn add(&self, record: &Record) -> Result<()> {
        let write = || -> Result<()> {
            let mut line = serde_json::to_vec(record)?;
            line.push(b'\n');
            let cut = fs::read(&self.path).is_ok_and(|old| !old.is_empty() && !old.ends_with(b"\n"));
            if cut {
                line.insert(0, b'\n');
            }
            let mut file = File::options().create(true).append(true).open(&self.path)?;
            file.write_all(&line)?;
            Ok(file.sync_data()?)
        };
        write().with_context(|| format!("cannot add a result to {}", self.path.display()))
    }

    /// All lines that are whole.
    pub fn read(&self) -> Result<Vec<Record>> {
        read(&self.path)
    }
}

/// All whole lines of a file; none if it does not exist.
pub fn read(path: &Path) -> Result<Vec<Record>> {
    let text = match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e).with_context(|| format!("cannot read {}", path.display())),
    };
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_costs_itself_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::of(dir.path(), "x").expect("a store");
        let end = |how: &str| Record::End { run: "1".into(), how: how.into(), finished: false };
        store.add(&end("one")).expect("added");
        let mut bytes = fs::read(store.path()).expect("lines");
        bytes.extend_from_slice(b"{\"kind\":\"turn\",\"run\":\"1\",\"conf");
        fs::write(store.path(), bytes).expect("cut");
        store.add(&end("two")).expect("added");
        let hows = store.read().expect("lines").into_iter().filter_map(|r| match r {
            Record::End { how, .. } => Some(how),
            _ => None,
        });
        assert_eq!(hows.collect::<Vec<_>>(), ["one", "two"]);
    }
}
