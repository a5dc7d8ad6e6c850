//! SQLite in the modes wal and delete: integrity_check, and balances that add up.

use std::path::Path;

use anyhow::Result;
use seawall_lab::crash::{ProgramLoad, check_sqlite};
use seawall_lab::lab::Lab;
use seawall_lab::side::{Preset, Side};
use seawall_load::ledger::Verdict;
use seawall_load::sqlite::JournalMode;

use super::Database;

/// In a journal mode.
struct Sqlite<const WAL: bool>;

impl<const WAL: bool> Sqlite<WAL> {
    const JOURNAL: JournalMode = if WAL { JournalMode::Wal } else { JournalMode::Delete };
}

impl<const WAL: bool> Database for Sqlite<WAL> {
    const PRESET: Preset = Preset::Sqlite;
    const SOME: usize = 300;
    const REFUSED: &str = "disk I/O error";
    type Load<'a> = ProgramLoad;

    fn install(_: &Lab) -> Self {
        Self
    }

    fn name(&self) -> String {
        format!("sqlite-mount-{}", Self::JOURNAL.pragma())
    }

    fn start<'a>(&'a self, lab: &'a Lab, _: &'a Path, ledger: &Path) -> ProgramLoad {
        ProgramLoad::sqlite(lab, Side::Mount, Self::JOURNAL, ledger).expect("starts")
    }

    fn wait(load: &ProgramLoad, more: usize) {
        load.wait_for_commits(more).expect("commits");
    }

    fn kill(load: ProgramLoad, others: &[u32]) {
        load.kill_with(others).expect("killed");
    }

    fn check(&self, lab: &Lab, side: Side, data: &Path, ledger: &Path) -> Result<Verdict> {
        check_sqlite(lab, side, data, ledger)
    }
}

type Wal = Sqlite<true>;
type Delete = Sqlite<false>;

// Holds: K1
#[test]
fn sqlite_in_mode_wal_is_killed() {
    super::the_database_is_killed::<Wal>();
}

// Holds: K5
#[test]
fn sqlite_in_mode_wal_loses_its_mount() {
    super::the_mounts_process_is_killed::<Wal>();
}

// Holds: K2
#[test]
fn sqlite_in_mode_wal_outlives_the_daemon() {
    super::the_daemon_is_killed_then_the_database::<Wal>();
}

// Holds: K6
#[test]
fn sqlite_in_mode_wal_and_everything_killed_at_once_then_replayed() {
    super::everything_is_killed_at_once_then_replayed::<Wal>();
}

// Holds: K1
#[test]
fn sqlite_in_mode_delete_is_killed() {
    super::the_database_is_killed::<Delete>();
}

// Holds: K5
#[test]
fn sqlite_in_mode_delete_loses_its_mount() {
    super::the_mounts_process_is_killed::<Delete>();
}

// Holds: K2
#[test]
fn sqlite_in_mode_delete_outlives_the_daemon() {
    super::the_daemon_is_killed_then_the_database::<Delete>();
}

// Holds: K6
#[test]
fn sqlite_in_mode_delete_and_everything_killed_at_once_then_replayed() {
    super::everything_is_killed_at_once_then_replayed::<Delete>();
}
