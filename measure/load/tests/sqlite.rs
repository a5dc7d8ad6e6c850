//! The SQLite load: ledger and database agree after kill -9, and the checker catches a lost commit.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use seawall_load::ledger::{self, Verdict};
use seawall_load::sqlite::Report;

fn load() -> Command {
    Command::new(env!("CARGO_BIN_EXE_seawall-load"))
}

fn paths(dir: &Path) -> (PathBuf, PathBuf) {
    (dir.join("bank.db"), dir.join("ledger"))
}

fn start(dir: &Path, args: &[&str]) -> Child {
    let (db, ledger) = paths(dir);
    let mut command = load();
    command.arg("sqlite").arg("--db").arg(db).arg("--ledger").arg(ledger).args(["--rows", "100"]).args(args);
    command.stdout(Stdio::piped()).spawn().expect("start seawall-load")
}

fn run(dir: &Path, args: &[&str]) -> Report {
    let out = start(dir, args).wait_with_output().expect("seawall-load ends");
    assert!(out.status.success());
    serde_json::from_slice(&out.stdout).expect("a report")
}

fn check(dir: &Path) -> (bool, Verdict) {
    let (db, ledger) = paths(dir);
    let Output { status, stdout, stderr } = load()
        .arg("check-sqlite")
        .arg("--db")
        .arg(db)
        .arg("--ledger")
        .arg(ledger)
        .output()
        .expect("run the check");
    let verdict = serde_json::from_slice(&stdout);
    (status.success(), verdict.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&stderr))))
}

#[test]
fn every_journal_mode_commits_and_checks() {
    for journal in ["wal", "delete", "truncate", "persist"] {
        let dir = tempfile::tempdir().expect("temporary directory");
        for commits in [20, 40] {
            assert_eq!(run(dir.path(), &["--journal", journal, "--ops", "20"]).commits, 20);
            let (clean, verdict) = check(dir.path());
            assert!(clean, "{journal}: {verdict:?}");
            assert_eq!((verdict.acknowledged, verdict.found), (commits, commits));
        }
    }
}

#[test]
fn nothing_acknowledged_is_missing_after_kill_9() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut child = start(dir.path(), &["--seconds", "60"]);
    let give_up = Instant::now() + Duration::from_secs(30);
    let (_, ledger) = paths(dir.path());
    while ledger::read(&ledger).map_or(0, |l| l.len()) < 20 && Instant::now() < give_up {
        sleep(Duration::from_millis(5));
    }
    child.kill().expect("kill the load");
    child.wait().expect("reap the load");
    let (clean, verdict) = check(dir.path());
    assert!(clean && verdict.acknowledged >= 20 && verdict.unacknowledged <= 1, "{verdict:?}");
}

#[test]
fn a_planted_missing_commit_is_caught() {
    let dir = tempfile::tempdir().expect("temporary directory");
    run(dir.path(), &["--ops", "10"]);
    let (_, ledger) = paths(dir.path());
    let mut file = std::fs::OpenOptions::new().append(true).open(ledger).expect("open the ledger");
    file.write_all(b"1 11\n").expect("claim a commit that never was");
    let (clean, verdict) = check(dir.path());
    assert!(!clean);
    assert_eq!((verdict.missing, verdict.missing_examples[0].seq), (1, 11));
}

#[test]
fn a_damaged_database_is_caught() {
    let dir = tempfile::tempdir().expect("temporary directory");
    run(dir.path(), &["--ops", "10", "--journal", "delete"]);
    let (db, _) = paths(dir.path());
    let mut bytes = std::fs::read(&db).expect("read the database");
    let page = 4096 * 2;
    bytes[page..page + 64].fill(0xff);
    std::fs::write(&db, bytes).expect("damage the database");
    let mut out = load();
    out.arg("check-sqlite").arg("--db").arg(&db).arg("--ledger").arg(dir.path().join("ledger"));
    assert!(!out.output().expect("run the check").status.success());
}

#[test]
fn a_database_for_each_commit() {
    for journal in ["wal", "delete"] {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut command = load();
        command.arg("sqlite").arg("--db").arg(dir.path().join("new.db"));
        command.args(["--anew", "--ops", "5", "--journal", journal]);
        let out = command.output().expect("run the load");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let report: Report = serde_json::from_slice(&out.stdout).expect("a report");
        assert_eq!((report.commits, report.latency.ops), (5, 5));
        assert!((0..5).all(|number| dir.path().join(format!("new-{number}.db")).exists()));
        // Those of an earlier run are not taken for new ones.
        assert!(!command.status().expect("run it again").success());
    }
}
