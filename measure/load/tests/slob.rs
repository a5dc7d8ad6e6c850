//! The SLOB method on SQLite, from load to check; what is planted is found.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rusqlite::Connection;
use seawall_load::slob::{CheckReport, Outcome};
use tempfile::TempDir;

/// A database and its ledger.
struct Scene(TempDir);

impl Scene {
    /// Loaded with two schemas of 200 rows and a few scan rows.
    fn new() -> Self {
        let scene = Scene(tempfile::tempdir().expect("a directory"));
        scene.call("setup", &["--set", "SCAN_TABLE_SZ=8", "--scale", "200", "-s", "2"]).expect_success();
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, command: &str, args: &[&str]) -> Command {
        let mut load = Command::new(env!("CARGO_BIN_EXE_seawall-load"));
        load.args(["slob", command, "--database", "sqlite", "--json", "--db"]).arg(self.path("slob.db"));
        load.arg("--ledger").arg(self.path("ledger")).args(args);
        load
    }

    fn call(&self, command: &str, args: &[&str]) -> Said {
        Said(self.command(command, args).output().expect("seawall-load"))
    }

    fn run(&self, args: &[&str]) -> Outcome {
        let fixed = ["--scale", "200", "--set", "SCAN_TABLE_SZ=8", "--set", "UPDATE_PCT=60"];
        let schemas: &[&str] = if args.contains(&"-s") { &[] } else { &["-s", "2"] };
        self.call("run", &[&fixed, schemas, args].concat()).expect_success().json()
    }

    fn check(&self) -> CheckReport {
        self.call("check", &[]).json()
    }

    fn sql(&self, sql: &str) {
        let changed = Connection::open(self.path("slob.db")).and_then(|db| db.execute(sql, []));
        assert!(changed.expect("changed") > 0, "{sql}");
    }
}

struct Said(Output);

impl Said {
    #[track_caller]
    fn expect_success(self) -> Self {
        assert!(self.0.status.success(), "{}", String::from_utf8_lossy(&self.0.stderr));
        self
    }

    #[track_caller]
    fn json<T: serde::de::DeserializeOwned>(self) -> T {
        let stderr = String::from_utf8_lossy(&self.0.stderr);
        serde_json::from_slice(&self.0.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
    }

    fn error(self) -> String {
        assert_eq!(self.0.status.code(), Some(2));
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }
}

#[test]
fn every_row_is_right_after_every_kind_of_run() {
    let scene = Scene::new();
    let loops = ["--set", "WORK_LOOP=40", "--set", "SCAN_PCT=20"];
    let mut updates = 0;
    for extra in [
        &["-t", "2", "--set", "REDO_STRESS=HEAVY"][..],
        &["-t", "2", "--set", "REDO_STRESS=LITE", "--set", "HOT_SCHEMA_FREQUENCY=3"],
        &["--commit", "asynchronous", "--set", "THINK_TM_FREQUENCY=20", "--set", "THINK_TM_MAX=0.1"],
        &["-t", "2", "--rate", "2000"],
    ] {
        let outcome = scene.run(&[&loops, extra].concat());
        assert_eq!(outcome.operations, 40 * u64::from(outcome.sessions), "{extra:?}");
        assert_eq!((outcome.latency.ops, outcome.errors.len()), (outcome.operations, 0), "{extra:?}");
        assert_eq!(outcome.rows.updated, outcome.update_latency.ops * 63);
        updates += outcome.update_latency.ops;
        let report = scene.check();
        assert!(report.is_clean(), "{extra:?}: {report:#?}");
        assert_eq!((report.acknowledged, report.unacknowledged, report.rows), (updates, 0, 400));
    }
    let outcome = scene.run(&["-s", "1", "--commit", "one-transaction", "--set", "WORK_LOOP=30"]);
    assert_eq!((outcome.transactions, outcome.waits.ops), (1, 1));
    assert!(scene.check().is_clean());
}

#[test]
fn a_row_a_page() {
    let report = Scene::new().check();
    assert!(report.blocks.is_none_or(|blocks| blocks == report.rows), "{report:?}");
}

#[test]
fn a_row_that_was_set_back_is_found() {
    let scene = Scene::new();
    // As a lost write would leave it: the whole row as it was before the run.
    sqlite(&scene, "CREATE TABLE kept AS SELECT * FROM seawall_slob1_data WHERE custid = 100");
    scene.run(&["--set", "WORK_LOOP=30", "--set", "UPDATE_PCT=100", "--set", "REDO_STRESS=HEAVY"]);
    assert!(scene.check().is_clean());
    scene.sql("DELETE FROM seawall_slob1_data WHERE custid = 100");
    scene.sql("INSERT INTO seawall_slob1_data SELECT * FROM kept");
    let report = scene.check();
    assert_eq!(report.problems, 1, "{report:#?}");
    assert!(
        report.examples[0].contains("schema 1 row 100") && report.examples[0].contains("lost"),
        "{report:?}"
    );
}

#[test]
fn half_an_update_a_swapped_row_and_a_lost_row_are_found() {
    for (planted, problem) in [
        (
            "UPDATE seawall_slob2_data SET c7 = (SELECT c7 FROM seawall_slob2_data WHERE custid = 9) WHERE custid = 5",
            "another row's",
        ),
        ("UPDATE seawall_slob2_data SET c7 = replace(c7, '0', '1') WHERE custid = 5", "checksum"),
        ("UPDATE seawall_slob2_data SET updates = updates + 1 WHERE custid = 5", "row 5"),
        ("DELETE FROM seawall_slob2_data WHERE custid = 5", "missing"),
        ("DELETE FROM seawall_slob1_scan WHERE custid = 5", "missing"),
    ] {
        let scene = Scene::new();
        scene.sql(planted);
        let report = scene.check();
        assert!(report.examples.iter().any(|said| said.contains(problem)), "{planted}: {report:#?}");
    }
}

#[test]
fn an_acknowledged_update_that_never_was_is_found() {
    let scene = Scene::new();
    scene.run(&["--set", "WORK_LOOP=5"]);
    let ledger = std::fs::read_to_string(scene.path("ledger")).expect("the ledger");
    std::fs::write(scene.path("ledger"), ledger + "1 100 64 77 0 1\n").expect("a claim");
    assert_eq!(scene.check().problems, 63);
}

#[test]
fn mistakes_are_named() {
    let scene = Scene::new();
    let conf = scene.path("slob.conf");
    std::fs::write(&conf, "RUN_TIME=1\nSCALE=200\nUPDATE_PCT=lots\n").expect("a file");
    let conf = conf.display().to_string();
    assert!(scene.call("run", &["--conf", &conf]).error().contains("line 3"));
    assert!(scene.call("run", &["--scale", "300"]).error().contains("run `setup` again"));
    assert!(scene.call("run", &["--scale", "200", "-s", "3"]).error().contains("2 schemas are loaded"));
    let empty = Scene(tempfile::tempdir().expect("a directory"));
    assert!(empty.call("check", &[]).error().contains("not loaded"));
}

#[test]
fn an_interrupted_run_tells_what_it_did() {
    let scene = Scene::new();
    let settings = ["--scale", "200", "--set", "SCAN_TABLE_SZ=8", "--set", "UPDATE_PCT=100"];
    let mut load = scene.command("run", &settings);
    let load = load.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("started");
    let lines = || std::fs::read_to_string(scene.path("ledger")).expect("the ledger").lines().count();
    while lines() < 10 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let mut kill = Command::new("kill");
    kill.args(["-INT", &load.id().to_string()]);
    assert!(kill.status().expect("kill").success());
    let said = load.wait_with_output().expect("it ends");
    assert_eq!(said.status.code(), Some(1));
    let outcome: Outcome = Said(said).json();
    assert!(outcome.operations >= 8 && outcome.errors[0].contains("interrupted"), "{:?}", outcome.errors);
    let report = scene.check();
    assert!(report.is_clean() && report.acknowledged == outcome.operations, "{report:?}");
}

#[test]
fn the_external_script_is_called_three_times() {
    let scene = Scene::new();
    let (script, heard) = (scene.path("script"), scene.path("heard"));
    make_script(&script, &format!("#!/bin/sh\necho $1 >>{}\n", heard.display()));
    let setting = format!("EXTERNAL_SCRIPT={}", script.display());
    scene.run(&["--set", "WORK_LOOP=1", "--set", &setting]);
    assert_eq!(std::fs::read_to_string(heard).expect("called"), "pre\npost\nend\n");
}

/// Not written by this process: a child of another test may have it open for writing then, which is not started.
fn make_script(path: &Path, text: &str) {
    let mut command = Command::new("sh");
    command.args(["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\""]).arg(path).arg(text);
    assert!(command.status().expect("sh starts").success());
}

fn sqlite(scene: &Scene, sql: &str) {
    let db = Connection::open(scene.path("slob.db")).expect("the database");
    db.execute_batch(sql).expect("done");
}
