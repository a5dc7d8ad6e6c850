//! The SQLite load, as each side runs it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use seawall_load::ledger::Verdict;
use seawall_load::sqlite::{JournalMode, Report};

use crate::compare::slices;
use crate::lab::Lab;
use crate::launch;
use crate::process::run;
use crate::side::{Preset, Side};

/// One run's shape.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub journal: JournalMode,
    pub seconds: f64,
}

impl Shape {
    /// The same in slices: how many, and one of them.
    pub fn slices(self) -> (usize, Shape) {
        let slices = slices(self.seconds, 0.5);
        (slices, Shape { seconds: self.seconds / slices as f64, ..self })
    }
}

/// Where a side's database of a journal mode is; the file is `bank.db`.
pub fn dir(lab: &Lab, side: Side, journal: JournalMode) -> PathBuf {
    lab.data(side, &format!("sqlite-{}-{}", side.name(), journal.pragma()))
}

/// Creates the database of one side and journal mode (not measured, on the bare file system). Returns
/// SQLite's version.
pub fn create(lab: &Lab, side: Side, journal: JournalMode) -> Result<String> {
    let dir = dir(lab, side, journal);
    lab.fresh_dir(&dir)?;
    let mut load = lab.command(&lab.tools.load);
    load.arg("sqlite").arg("--db").arg(dir.join("bank.db"));
    load.args(["--journal", journal.pragma(), "--seconds", "0"]);
    let json = run(load, "creating the SQLite database")?;
    let report: Report = serde_json::from_slice(&json).context("cannot read the SQLite load's report")?;
    Ok(report.sqlite_version)
}

/// One measured run.
pub fn measure(lab: &Lab, side: Side, shape: Shape) -> Result<Report> {
    let json = run(load(lab, side, shape, None)?, "the SQLite load")?;
    serde_json::from_slice(&json).context("cannot read the SQLite load's report")
}

/// What the load reported as committed is there, and the database is sound.
pub fn check_work(lab: &Lab, side: Side, journal: JournalMode, reported: u64) -> Result<()> {
    let found = commits_in(lab, lab.command(&lab.tools.load), &dir(lab, side, journal).join("bank.db"))?;
    ensure!(found == reported, "SQLite reported {reported} commits, but holds {found}");
    Ok(())
}

/// How many commits a sound database holds; `check` is the load's program as it is to be run.
pub fn commits_in(lab: &Lab, mut check: Command, db: &Path) -> Result<u64> {
    let ledger = lab.work.log("ledger-none"); // every commit counts, none is looked for by name
    std::fs::write(&ledger, "").context("cannot create an empty ledger")?;
    check.arg("check-sqlite").arg("--db").arg(db).arg("--ledger").arg(&ledger);
    let found: Verdict = serde_json::from_slice(&run(check, "the SQLite check")?)?;
    Ok(found.found)
}

/// The load's command; with a ledger it runs until it is killed or its time is over.
pub fn load(lab: &Lab, side: Side, shape: Shape, ledger: Option<&Path>) -> Result<Command> {
    let dir = dir(lab, side, shape.journal);
    let mut args = arguments(&dir.join("bank.db"), side, shape);
    if let Some(ledger) = ledger {
        args.extend(["--ledger".into(), ledger.into()]);
    }
    launch::command(lab, side, Preset::Sqlite, &dir, &lab.tools.load, args)
}

/// The load's arguments.
pub fn arguments(db: &Path, side: Side, shape: Shape) -> Vec<OsString> {
    let mut args = vec!["sqlite".into(), "--db".into(), db.into()];
    let synchronous = if side.is_unsafe() { "off" } else { "full" };
    args.extend(["--journal", shape.journal.pragma(), "--synchronous", synchronous].map(Into::into));
    args.extend(["--seconds".into(), shape.seconds.to_string().into()]);
    args
}
