//! SQLite in a machine: installed, put under load, recovered, checked.
//!
//! Two programs write the same database. In the rollback journal's modes the load says `synchronous=EXTRA`:
//! SQLite documents that FULL may undo the last commit there, because the directory is not synced after the
//! rollback journal was removed. That is the database's choice, not the disk's or Seawall's.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use seawall_load::ledger::Verdict;
use seawall_load::sqlite::JournalMode;

use crate::boot::{Acts, Boot, Checked};
use crate::cut::{ledger_length, until_the_cut};
use crate::judge::{self, judge};
use crate::outside::DATA;
use crate::place::Place;
use crate::plan::Side;
use crate::program::{self, FOREVER, LIMIT};

const CLIENTS: [&str; 2] = ["1", "2"];

const NAME: &str = "sqlite";
const DATABASE: &str = "bank.db";

/// On the disk.
fn directory() -> PathBuf {
    Path::new(DATA).join(NAME)
}

/// What is done with it.
pub const ACTS: Acts = Acts { install, load, check };

/// An empty database.
fn install(boot: &Boot) -> Result<()> {
    std::fs::create_dir_all(directory()).context("cannot create SQLite's directory")?;
    let place = place(boot, Side::Synced)?;
    program::run(writer(boot, Side::Synced, &place, "1", "0")?, "creating the SQLite database", LIMIT)
        .map(drop)
}

/// Commits until the power fails.
fn load(boot: &Boot) -> Result<()> {
    let before = ledger_length(boot);
    let (side, place) = (boot.plan.side, place(boot, boot.plan.side)?);
    // Changing the journal mode needs the database alone.
    program::run(writer(boot, side, &place, "1", "0")?, "setting the journal mode", LIMIT)?;
    let mut writers = Vec::new();
    for client in CLIENTS {
        writers.push(program::start(writer(boot, side, &place, client, FOREVER)?, "the SQLite load")?);
    }
    until_the_cut(boot, before, || writers.iter_mut().try_for_each(program::Running::must_run))
}

/// Recovers and checks.
fn check(boot: &Boot) -> Result<Checked> {
    let guard = directory().join("bank.db-journal/.seawall");
    judge(boot, &directory(), || guard.exists(), bare_read_problem, |side, _| verdict(boot, side))
}

fn place(boot: &Boot, side: Side) -> Result<Place> {
    Place::of(boot, side, NAME, "sqlite")
}

fn writer(boot: &Boot, side: Side, place: &Place, client: &str, seconds: &str) -> Result<Command> {
    let synchronous = match (side, boot.plan.journal) {
        (Side::Unsafe, _) => "off",
        (_, JournalMode::Wal) => "full",
        _ => "extra",
    };
    let mut writer = place.command(boot, side, NAME, "seawall-load")?;
    writer.args(["sqlite", "--db"]).arg(place.path().join(DATABASE));
    writer.args(["--journal", boot.plan.journal.pragma(), "--synchronous", synchronous]);
    writer.args(["--client", client, "--seconds", seconds]);
    if seconds != "0" {
        writer.arg("--ledger").arg(boot.plan.ledger());
    }
    Ok(writer)
}

fn verdict(boot: &Boot, side: Side) -> Result<Verdict> {
    let place = place(boot, side)?;
    let mut check = place.command(boot, side, NAME, "seawall-load")?;
    check.args(["check-sqlite", "--db"]).arg(place.path().join(DATABASE));
    check.arg("--ledger").arg(boot.plan.ledger());
    let verdict = judge::verdict(check)?;
    place.leave(boot)?;
    Ok(verdict)
}

/// Reads the database without Seawall although the guard is up; SQLite must refuse.
fn bare_read_problem() -> Result<Option<String>> {
    let mut shell = Command::new("sqlite3");
    shell.arg(directory().join(DATABASE)).arg("SELECT count(*) FROM history");
    let ended = program::finish(shell, "sqlite3 behind the guard", Duration::from_secs(20))?;
    let refused = !ended.status.success() && ended.stderr.contains("disk I/O error");
    Ok((!refused).then(|| format!("sqlite3 behind the guard was not refused: {ended}")))
}
