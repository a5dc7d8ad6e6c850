//! etcd, which no preload can serve: keys without a gap, values that name their keys, `etcdctl snapshot status`.

use std::path::Path;

use anyhow::Result;
use seawall_lab::crash::{ProgramLoad, check_etcd};
use seawall_lab::lab::Lab;
use seawall_lab::side::{Preset, Side};
use seawall_load::ledger::Verdict;

use super::Database;

const NAME: &str = "etcd";

struct Etcd;

impl Database for Etcd {
    const PRESET: Preset = Preset::Etcd;
    /// Some 80 MB: etcd begins another segment of its log, and another snapshot.
    const SOME: usize = 1_200;
    const REFUSED: &str = "invalid database";
    type Load<'a> = ProgramLoad;

    fn install(lab: &Lab) -> Self {
        lab.fresh_dir(&lab.data(Side::Mount, NAME)).expect("a directory");
        Self
    }

    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn start<'a>(&'a self, lab: &'a Lab, data: &'a Path, ledger: &Path) -> ProgramLoad {
        ProgramLoad::etcd(lab, Side::Mount, data, ledger).expect("etcd, which `make deps` installs")
    }

    fn wait(load: &ProgramLoad, more: usize) {
        load.wait_for_commits(more).expect("commits");
    }

    fn kill(load: ProgramLoad, others: &[u32]) {
        load.kill_with(others).expect("killed");
    }

    fn check(&self, lab: &Lab, side: Side, data: &Path, ledger: &Path) -> Result<Verdict> {
        check_etcd(lab, side, data, ledger)
    }
}

// Holds: K1
#[test]
fn etcd_is_killed() {
    super::the_database_is_killed::<Etcd>();
}

// Holds: K5
#[test]
fn etcd_loses_its_mount() {
    super::the_mounts_process_is_killed::<Etcd>();
}

// Holds: K2
#[test]
fn etcd_outlives_the_daemon() {
    super::the_daemon_is_killed_then_the_database::<Etcd>();
}

// Holds: K6
#[test]
fn etcd_and_everything_killed_at_once_then_replayed() {
    super::everything_is_killed_at_once_then_replayed::<Etcd>();
}
