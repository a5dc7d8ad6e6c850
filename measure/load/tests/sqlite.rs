//! The SQLite load: ledger and database agree after kill -9, and the checker catches a lost commit.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use seawall_load::ledger::{self, Verdict};
use seawall_load::sqlite::Report;
use tempfile::TempDir;

/// A directory with a database and its ledger.
struct Scene(TempDir);

impl Scene {
    fn new() -> Self {
        Scene(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, command: &str, args: &[&str]) -> Command {
        let mut load = Command::new(env!("CARGO_BIN_EXE_seawall-load"));
        load.arg(command).arg("--db").arg(self.path("bank.db")).args(args);
        load
    }

    fn start(&self, args: &[&str]) -> Child {
        let mut load = self.command("sqlite", &["--rows", "100"]);
        load.arg("--ledger").arg(self.path("ledger")).args(args);
        load.stdout(Stdio::piped()).spawn().expect("start seawall-load")
    }

    fn run(&self, args: &[&str]) -> Report {
        let out = self.start(args).wait_with_output().expect("seawall-load ends");
        assert!(out.status.success());
        serde_json::from_slice(&out.stdout).expect("a report")
    }

    fn check(&self) -> (bool, Verdict) {
        let mut check = self.command("check-sqlite", &["--ledger"]);
        let Output { status, stdout, stderr } =
            check.arg(self.path("ledger")).output().expect("run the check");
        let verdict = serde_json::from_slice(&stdout);
        (status.success(), verdict.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&stderr))))
    }
}

#[test]
fn every_journal_mode_commits_and_checks() {
    for journal in ["wal", "delete", "truncate", "persist"] {
        let scene = Scene::new();
        for commits in [20, 40] {
            assert_eq!(scene.run(&["--journal", journal, "--ops", "20"]).commits, 20);
            let (clean, verdict) = scene.check();
            assert!(clean, "{journal}: {verdict:?}");
            assert_eq!((verdict.acknowledged, verdict.found), (commits, commits));
        }
    }
}

#[test]
fn nothing_acknowledged_is_missing_after_kill_9() {
    let scene = Scene::new();
    let mut child = scene.start(&["--seconds", "60"]);
    let give_up = Instant::now() + Duration::from_secs(30);
    let ledger = scene.path("ledger");
    while ledger::read(&ledger).map_or(0, |l| l.len()) < 20 && Instant::now() < give_up {
        sleep(Duration::from_millis(5));
    }
    child.kill().expect("kill the load");
    child.wait().expect("reap the load");
    let (clean, verdict) = scene.check();
    assert!(clean && verdict.acknowledged >= 20 && verdict.unacknowledged <= 1, "{verdict:?}");
}

#[test]
fn a_planted_missing_commit_is_caught() {
    let scene = Scene::new();
    scene.run(&["--ops", "10"]);
    let ledger = std::fs::OpenOptions::new().append(true).open(scene.path("ledger"));
    let mut file = ledger.expect("open the ledger");
    file.write_all(b"1 11\n").expect("claim a commit that never was");
    let (clean, verdict) = scene.check();
    assert!(!clean);
    assert_eq!((verdict.missing, verdict.missing_examples[0].seq), (1, 11));
}

#[test]
fn a_damaged_database_is_caught() {
    let scene = Scene::new();
    scene.run(&["--ops", "10", "--journal", "delete"]);
    let db = scene.path("bank.db");
    let mut bytes = std::fs::read(&db).expect("read the database");
    let page = 4096 * 2;
    bytes[page..page + 64].fill(0xff);
    std::fs::write(&db, bytes).expect("damage the database");
    let mut check = scene.command("check-sqlite", &["--ledger"]);
    let out = check.arg(scene.path("ledger")).output().expect("run the check");
    assert!(!out.status.success());
}

#[test]
fn a_database_for_each_commit() {
    for journal in ["wal", "delete"] {
        let scene = Scene::new();
        let mut command = scene.command("sqlite", &["--anew", "--ops", "5", "--journal", journal]);
        let out = command.output().expect("run the load");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let report: Report = serde_json::from_slice(&out.stdout).expect("a report");
        assert_eq!((report.commits, report.latency.ops), (5, 5));
        assert!((0..5).all(|number| scene.path(&format!("bank-{number}.db")).exists()));
        // Those of an earlier run are not taken for new ones.
        assert!(!command.status().expect("run it again").success());
    }
}
