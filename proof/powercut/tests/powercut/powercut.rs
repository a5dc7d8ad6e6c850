//! A few power cuts of each database; `make soak` runs as many as asked.
//!
//! What they need (root, FUSE, loop devices, namespaces) not every machine offers: then they test nothing,
//! and say so on standard error itself, where a test's output is not captured.

use crate::common::programs;
use std::io::Write as _;
use std::process::Command;

use seawall_powercut::file_system::FileSystem;
use seawall_powercut::fitness;
use seawall_powercut::front::Front;
use seawall_powercut::medium::Medium;
use seawall_powercut::plan::Database;
use seawall_powercut::report::Report;

const PROGRAM: &str = env!("CARGO_BIN_EXE_seawall-powercut");

const PRELOAD: (Front, Medium) = (Front::Preload, Medium::Memory);

/// A campaign's options. What runs without Seawall, or without its log, is the same as in the other tests.
fn way(front: Front, medium: Medium) -> &'static [&'static str] {
    match (front, medium) {
        (Front::Preload, Medium::Memory) => &["--front", "preload"],
        (Front::Preload, Medium::Disk) => &["--medium", "disk", "--sides", "seawall,atomic"],
        (Front::Mount, _) => &["--front", "mount", "--sides", "seawall,atomic,logless"],
        (Front::Disk, _) => &["--front", "disk"],
    }
}

/// What a short campaign found; `None` if this machine cannot carry it out.
fn campaign(
    databases: &[Database],
    rounds: &str,
    (front, medium): (Front, Medium),
    more: &[&str],
) -> Option<Report> {
    let names: Vec<String> =
        databases.iter().map(|database| format!("{database:?}").to_lowercase()).collect();
    let names = names.join(",");
    if let Err(missing) = fitness::check(databases, FileSystem::default()) {
        let _ =
            writeln!(std::io::stderr(), "\nSKIPPED, POWER CUTS OF {names} WERE NOT TESTED: {missing:#}\n");
        return None;
    }
    programs::directory();
    let out = tempfile::tempdir().expect("a directory for the result");
    let ended = Command::new(PROGRAM)
        // A single cut without the log may come when the log happens to be empty, and then shows nothing.
        .args(["run", "--only", &names, "--rounds", rounds, "--controls", "3", "--out"])
        .arg(out.path())
        .args(way(front, medium))
        .args(more)
        .output()
        .expect("our own program starts");
    let said =
        format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    if !ended.status.success() {
        // The evidence stays for whoever has to look into it.
        panic!("{}\n{said}\nevidence: {}", ended.status, out.keep().display());
    }
    let json = std::fs::read(out.path().join(Report::file(front, medium))).expect("the result");
    let report: Report = serde_json::from_slice(&json).expect("a report");
    for totals in &report.totals {
        // A machine that is cut while everything starts may have had no time.
        let had_time = report.rounds.iter().any(|round| {
            (round.plan.database, round.plan.side) == (totals.database, totals.side) && !round.plan.early
        });
        assert!(totals.acknowledged > 0 || !had_time, "{said}");
        assert_eq!(totals.lost > 0, totals.side.must_lose(), "{said}");
    }
    Some(report)
}

// Holds: internals/FAILURE_MODEL#promises, K7
#[test]
fn no_acknowledged_commit_is_lost_to_a_power_cut() {
    let all = [Database::Postgres, Database::Sqlite];
    let Some(report) = campaign(&all, "2", PRELOAD, &[]) else { return };
    assert_eq!(report.totals.len(), 9, "two databases on four sides, and one without full pages");
}

// Holds: internals/FAILURE_MODEL#promises, K7
#[test]
fn no_acknowledged_commit_of_mariadb_is_lost_to_a_power_cut() {
    let Some(report) = campaign(&[Database::Mariadb], "1", PRELOAD, &[]) else { return };
    assert_eq!(report.totals.len(), 5, "four sides, and one without doublewrite buffer");
}

// Holds: K7
#[test]
fn no_acknowledged_commit_of_redis_or_a_store_is_lost_to_a_power_cut() {
    let all = [Database::Redis, Database::Rocksdb, Database::Lmdb];
    let Some(report) = campaign(&all, "1", PRELOAD, &[]) else { return };
    assert_eq!(report.totals.len(), 12, "three databases on four sides");
}

/// By what they do, and not by their files' names: new files, renames and removals of theirs are in the log.
#[test]
fn no_acknowledged_commit_of_a_database_that_is_any_program_is_lost_to_a_power_cut() {
    let more = ["--as-any", "--sides", "seawall,logless"];
    let all = [Database::Rocksdb, Database::Sqlite];
    let Some(report) = campaign(&all, "3", PRELOAD, &more) else { return };
    assert_eq!(report.totals.len(), 4, "two databases on two sides");
}

#[test]
fn no_file_that_was_synced_is_lost_to_a_power_cut_nor_is_a_name() {
    let Some(report) = campaign(&[Database::Files], "6", PRELOAD, &[]) else { return };
    assert_eq!(report.totals.len(), 4, "four sides");
}

#[test]
fn no_file_that_was_synced_on_the_mount_is_lost_to_a_power_cut_nor_is_a_name() {
    let how = (Front::Mount, Medium::Memory);
    let Some(report) = campaign(&[Database::Files], "4", how, &[]) else { return };
    assert_eq!(report.totals.len(), 2, "two sides");
}

// Holds: K7
#[test]
fn no_acknowledged_commit_is_lost_to_a_power_cut_on_the_mount() {
    let all = [Database::Postgres, Database::Sqlite, Database::Mariadb, Database::Rocksdb, Database::Etcd];
    let Some(report) = campaign(&all, "1", (Front::Mount, Medium::Memory), &[]) else { return };
    assert_eq!(report.totals.len(), 12, "five databases with their log and without, two without copies");
}

#[test]
fn no_acknowledged_commit_is_lost_to_a_power_cut_of_the_disk_with_the_log() {
    let all = [Database::Postgres, Database::Sqlite];
    let on_disk = (Front::Preload, Medium::Disk);
    let Some(report) = campaign(&all, "2", on_disk, &[]) else { return };
    assert_eq!(report.totals.len(), 3, "two databases, and one without full pages");
}
