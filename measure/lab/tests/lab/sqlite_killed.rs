//! SQLite under Seawall, killed at full load: no acknowledged commit is missing, integrity_check is clean.

use crate::common::{Place, assert_complete};
use seawall_lab::crash::{ProgramLoad, check_sqlite};
use seawall_lab::side::Side;
use seawall_lab::sqlite;
use seawall_load::sqlite::JournalMode;

/// Commits before the kill.
const SOME: usize = 300;

fn under_load(place: &Place, journal: JournalMode) -> ProgramLoad {
    let load = ProgramLoad::sqlite(&place.lab, Side::Seawall, journal, &place.ledger()).expect("starts");
    load.wait_for_commits(SOME).expect("commits");
    load
}

fn the_program_killed(journal: JournalMode) {
    let place = Place::new();
    under_load(&place, journal).kill().expect("killed");
    let dir = sqlite::dir(&place.lab, Side::Seawall, journal);
    let check = || check_sqlite(&place.lab, Side::Seawall, &dir, &place.ledger()).expect("a verdict");
    assert_complete(&check());
    place.claim_one_more();
    assert_eq!(check().missing, 1, "the check can fail");
}

fn everything_killed(place: &Place, journal: JournalMode, lose: impl FnOnce()) {
    under_load(place, journal).kill_with(&[place.daemon()]).expect("killed");
    lose();
    let dir = sqlite::dir(&place.lab, Side::Seawall, journal);
    let bare = || check_sqlite(&place.lab, Side::Fs, &dir, &place.ledger());
    let refused = bare().expect_err("the bare database is refused");
    assert!(refused.to_string().contains("disk I/O error"), "{refused:#}");
    place.recover_with_replay();
    // From here on without Seawall: the files alone hold everything.
    assert_complete(&bare().expect("a verdict"));
}

// Holds: K1
#[test]
fn wal_mode_the_program_killed() {
    the_program_killed(JournalMode::Wal);
}

// Holds: K1
#[test]
fn delete_mode_the_program_killed() {
    the_program_killed(JournalMode::Delete);
}

// Holds: K6
#[test]
fn wal_mode_everything_killed_at_once_then_replayed() {
    everything_killed(&Place::new(), JournalMode::Wal, || ());
}

// Holds: K6
#[test]
fn delete_mode_everything_killed_at_once_then_replayed() {
    everything_killed(&Place::new(), JournalMode::Delete, || ());
}

#[test]
fn on_a_block_device_wal_mode_everything_killed_then_replayed_from_the_device_alone() {
    let place = Place::on_block();
    everything_killed(&place, JournalMode::Wal, || place.lose_memory());
}

#[test]
fn on_a_block_device_delete_mode_everything_killed_then_replayed_from_the_device_alone() {
    let place = Place::on_block();
    everything_killed(&place, JournalMode::Delete, || place.lose_memory());
}
