//! RocksDB: every value names its key, and `ldb checkconsistency`.

use std::path::Path;

use anyhow::Result;
use seawall_lab::crash::{ProgramLoad, check_store};
use seawall_lab::lab::Lab;
use seawall_lab::side::{Preset, Side};
use seawall_lab::store::Program;
use seawall_load::ledger::Verdict;
use seawall_load::store::Store;

use super::Database;

const NAME: &str = "rocksdb";

struct Rocksdb(Program);

impl Database for Rocksdb {
    const PRESET: Preset = Preset::Rocksdb;
    /// RocksDB switches its log meanwhile.
    const SOME: usize = 12_000;
    const REFUSED: &str = "CURRENT file corrupted";
    type Load<'a> = ProgramLoad;

    fn install(lab: &Lab) -> Self {
        lab.fresh_dir(&lab.data(Side::Mount, NAME)).expect("a directory");
        Self(Program::build(lab, Store::Rocksdb, "").expect("built"))
    }

    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn start<'a>(&'a self, lab: &'a Lab, data: &'a Path, ledger: &Path) -> ProgramLoad {
        ProgramLoad::store(lab, &self.0, Side::Mount, data, ledger).expect("starts")
    }

    fn wait(load: &ProgramLoad, more: usize) {
        load.wait_for_commits(more).expect("commits");
    }

    fn kill(load: ProgramLoad, others: &[u32]) {
        load.kill_with(others).expect("killed");
    }

    fn check(&self, lab: &Lab, side: Side, data: &Path, ledger: &Path) -> Result<Verdict> {
        check_store(lab, &self.0, side, data, ledger)
    }
}

// Holds: K1
#[test]
fn rocksdb_is_killed() {
    super::the_database_is_killed::<Rocksdb>();
}

// Holds: K5
#[test]
fn rocksdb_loses_its_mount() {
    super::the_mounts_process_is_killed::<Rocksdb>();
}

// Holds: K2
#[test]
fn rocksdb_outlives_the_daemon() {
    super::the_daemon_is_killed_then_the_database::<Rocksdb>();
}

// Holds: K6
#[test]
fn rocksdb_and_everything_killed_at_once_then_replayed() {
    super::everything_is_killed_at_once_then_replayed::<Rocksdb>();
}
