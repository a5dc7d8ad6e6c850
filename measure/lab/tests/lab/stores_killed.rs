//! RocksDB and LMDB under Seawall, killed at full load: no acknowledged commit is missing, and their own
//! checkers are content.

use std::path::PathBuf;

use crate::common::{Place, assert_complete};
use seawall_lab::crash::{ProgramLoad, check_store};
use seawall_lab::process;
use seawall_lab::side::Side;
use seawall_lab::store::Program;
use seawall_load::ledger::Verdict;
use seawall_load::store::Store;

/// Commits between two events: RocksDB switches its log meanwhile.
fn some(store: Store) -> usize {
    match store {
        Store::Rocksdb => 12_000,
        Store::Lmdb => 2_000,
    }
}

struct Scene {
    place: Place,
    program: Program,
    data: PathBuf,
}

impl Scene {
    fn new(store: Store) -> Self {
        Self::with(store, "")
    }

    fn with(store: Store, settings: &'static str) -> Self {
        Self::at(Place::new(), store, settings)
    }

    fn at(place: Place, store: Store, settings: &'static str) -> Self {
        let program = Program::build(&place.lab, store, settings).expect("built");
        let data = place.lab.work.data(store.name());
        place.lab.fresh_dir(&data).expect("a directory");
        Self { place, program, data }
    }

    fn under_load(&self, commits: usize) -> ProgramLoad {
        let ledger = self.place.ledger();
        let load = ProgramLoad::store(&self.place.lab, &self.program, Side::Seawall, &self.data, &ledger);
        let load = load.expect("starts");
        load.wait_for_commits(commits).expect("commits");
        load
    }

    fn check(&self, side: Side) -> anyhow::Result<Verdict> {
        check_store(&self.place.lab, &self.program, side, &self.data, &self.place.ledger())
    }
}

fn the_program_killed(store: Store) {
    let scene = Scene::new(store);
    scene.under_load(some(store)).kill().expect("killed");
    let check = || scene.check(Side::Seawall).expect("a verdict");
    assert_complete(&check());
    scene.place.claim_one_more();
    assert_eq!(check().missing, 1, "the check can fail");
}

fn the_daemon_killed_then_the_program(store: Store) {
    let scene = Scene::new(store);
    let load = scene.under_load(some(store));
    let first = scene.place.daemon();
    process::signal(first, libc::SIGKILL);
    load.wait_for_commits(100).expect("the program goes on");
    scene.place.wait_for_another_daemon(first);
    load.wait_for_commits(some(store)).expect("the new one took the log over");
    load.kill().expect("killed");
    assert_complete(&scene.check(Side::Seawall).expect("a verdict"));
}

fn everything_killed(scene: &Scene, commits: usize, words: &str) {
    scene.under_load(commits).kill_with(&[scene.place.daemon()]).expect("killed");
    replayed(scene, words);
}

fn replayed(scene: &Scene, words: &str) {
    let refused = scene.check(Side::Fs).expect_err("the bare store is refused").to_string();
    assert!(refused.contains(words), "{refused}");
    scene.place.recover_with_replay();
    // From here on without Seawall: the files alone hold everything.
    assert_complete(&scene.check(Side::Fs).expect("a verdict"));
}

// Holds: K1
#[test]
fn rocksdb_the_program_killed() {
    the_program_killed(Store::Rocksdb);
}

// Holds: K1
#[test]
fn lmdb_the_program_killed() {
    the_program_killed(Store::Lmdb);
}

// Holds: K2
#[test]
fn rocksdb_the_daemon_killed_then_the_program() {
    the_daemon_killed_then_the_program(Store::Rocksdb);
}

// Holds: K2
#[test]
fn lmdb_the_daemon_killed_then_the_program() {
    the_daemon_killed_then_the_program(Store::Lmdb);
}

// Holds: K6
#[test]
fn rocksdb_everything_killed_at_once_then_replayed() {
    everything_killed(&Scene::new(Store::Rocksdb), some(Store::Rocksdb), "CURRENT file corrupted");
}

#[test]
fn on_a_block_device_rocksdb_everything_killed_then_replayed_from_the_device_alone() {
    let scene = Scene::at(Place::on_block(), Store::Rocksdb, "");
    scene.under_load(some(Store::Rocksdb) / 4).kill_with(&[scene.place.daemon()]).expect("killed");
    scene.place.lose_memory();
    replayed(&scene, "CURRENT file corrupted");
}

// Holds: K6
#[test]
fn lmdb_everything_killed_at_once_then_replayed() {
    everything_killed(&Scene::new(Store::Lmdb), some(Store::Lmdb), "not an LMDB file");
}

/// Written through a mapping, its data file is not in the log: every commit waits for the disk, and is as safe.
// Holds: K6
#[test]
fn lmdb_mapped_everything_killed_at_once_then_replayed() {
    let scene = Scene::with(Store::Lmdb, "writemap");
    everything_killed(&scene, 100, "not an LMDB file");
}
