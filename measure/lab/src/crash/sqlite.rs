//! A SQLite program under full load, noting its commits in a ledger.

use std::path::Path;

use anyhow::Result;
use seawall_load::ledger::Verdict;
use seawall_load::sqlite::JournalMode;

use super::program::ProgramLoad;
use super::waiting::{LIMIT, verdict};
use crate::lab::Lab;
use crate::launch;
use crate::side::{Preset, Side};
use crate::sqlite::{self, Shape};

impl ProgramLoad {
    /// Starts the SQLite load on an empty database of `side`'s, so that the ledger is complete.
    pub fn sqlite(lab: &Lab, side: Side, journal: JournalMode, ledger: &Path) -> Result<Self> {
        sqlite::create(lab, side, journal)?;
        let shape = Shape { journal, seconds: LIMIT.as_secs_f64() };
        let command = sqlite::load(lab, side, shape, Some(ledger))?;
        Self::start(command, &lab.tools.load, ledger)
    }
}

/// Compares ledger and the database in `dir`, opening it as `side` does.
pub fn check_sqlite(lab: &Lab, side: Side, dir: &Path, ledger: &Path) -> Result<Verdict> {
    let db = dir.join("bank.db");
    let args =
        ["check-sqlite".as_ref(), "--db".as_ref(), db.as_os_str(), "--ledger".as_ref(), ledger.as_os_str()];
    let check = launch::command(lab, side, Preset::Sqlite, dir, &lab.tools.load, args)?;
    verdict(check, "the SQLite check")
}
