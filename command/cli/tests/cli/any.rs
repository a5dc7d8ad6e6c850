//! The preset any: a program that Seawall does not know, whose files it recognises by what the program does with them.

use std::fs;
use std::process::Command;

use crate::common::mirrors::{lose_memory, recover};
use crate::common::mounts::Mounts;
use crate::common::{Place, SEAWALL, Said, Writer, cc, has, kill_everything, wait_for};
use seawall_media::ordered::keeps_names_in_order;
use serde_json::Value;

/// A name that no preset knows.
const STORE: &str = "store.dat";
const NOTE: &str = "SEAWALL-UNREPLAYED";

/// The program, in a directory of its own.
struct Scene {
    place: Place,
    program: String,
}

impl Scene {
    fn new(place: Place) -> Self {
        let program = cc(&place, "any", include_str!("programs/any.c"), &["-O1"]).expect("a C compiler");
        fs::create_dir(place.file("data")).expect("made");
        Self { program: program.display().to_string(), place }
    }

    fn run(&self, options: &[&str], command: &[&str]) -> Said {
        let before = ["run", "--pool", self.place.pool()];
        self.place.seawall(&[&before, options, &["--"], command].concat())
    }

    /// Runs the program and looks, while the log is still open, at what is in it.
    fn files_after(&self, how: &str, file: &str, times: u32) -> Vec<Value> {
        let script = format!(
            "{} {how} data/{file} {times} && {SEAWALL} status --json --pool {} > status.json",
            self.program,
            self.place.pool()
        );
        self.run(&["--preset", "any", "--data", "data"], &["sh", "-c", &script]).succeeds();
        let text = fs::read_to_string(self.place.file("status.json")).expect("looked");
        let status: Value = serde_json::from_str(&text).expect("JSON");
        status["files"].as_array().expect("files").clone()
    }
}

#[test]
fn a_file_of_any_name_is_in_the_log_from_its_second_sync_on() {
    let scene = Scene::new(Place::new());
    for (how, absorbed) in [("append", 18), ("reopen", 18), ("dsync", 18)] {
        let file = format!("{how}.dat");
        let files = scene.files_after(how, &file, 20);
        let is_it = |found: &&Value| found["path"].as_str().is_some_and(|path| path.ends_with(&file));
        let found = files.iter().find(is_it).unwrap_or_else(|| panic!("{how}: {files:?}"));
        let syncs = [&found["absorbed"], &found["writes"]].map(|count| count.as_u64().unwrap_or(0));
        assert!(syncs[usize::from(how == "dsync")] >= absorbed, "{how}: {found}");
        assert_eq!(found["preset"], "any", "{how}");
        let written = fs::metadata(scene.place.file("data").join(&file)).expect("written").len();
        assert_eq!(written, 20 * 512, "{how}");
    }
    assert!(!scene.place.file("data").join(NOTE).exists(), "the log is closed");
}

/// A new file may have the inode of one that was removed a moment ago.
#[test]
fn what_is_synced_once_is_left_alone_and_said() {
    let scene = Scene::new(Place::new());
    let data = scene.place.file("data");
    let files = scene.files_after("fresh", "f", 30);
    assert!(
        files.iter().all(|file| file["path"].as_str() == data.to_str()),
        "the directory at most: {files:?}"
    );
    let command = [scene.program.as_str(), "fresh", "data/f", "3"];
    let said = scene.run(&["--preset", "any", "--data", "data"], &command);
    if keeps_names_in_order(fs::File::open(data).expect("open")) {
        return;
    }
    assert!(files.is_empty());
    let why = "its file system does not keep changes of names in order";
    said.succeeds().says(&["nothing of this run went through the log", why]);
}

#[test]
fn a_command_that_no_preset_knows_needs_its_directory_only() {
    let scene = Scene::new(Place::new());
    let command = [scene.program.as_str(), "append", "data/x", "9"];
    scene.run(&[], &command).fails(125, &["cannot tell where", "any writes", "--data"]);
    let said = scene.run(&["--data", "data"], &command);
    assert!(!said.succeeds().err.contains("WARNING"), "{}", said.err);
    scene
        .run(&["--data", "data", "--policy", "atomic"], &command)
        .fails(125, &["any goes with --policy tail"]);
    let slow = format!("{} append data/x 9; sleep 4", scene.program);
    let said = scene.run(&["--data", "data"], &["sh", "-c", &slow]);
    said.succeeds().says(&["in the log: ", "data/x"]);
}

// Holds: L24
#[test]
fn a_log_that_outlives_the_machine_needs_a_recovery_at_its_start_or_a_word() {
    let mut place = Place::bare();
    place.pool = place.data.path().join("seawall.log");
    place.seawall(&["init", "--block", place.pool(), "--size", "16M"]).succeeds();
    let scene = Scene::new(place);
    let command = [scene.program.as_str(), "append", "data/x", "9"];
    // Whatever this machine has, a run that leaves it out has not.
    let said = scene.run(&["--data", "data", "--no-boot"], &command);
    said.fails(125, &["old files", "seawall-recover.service", "--unguarded", "seawall recover --pool"]);
    assert!(!scene.place.file("data/x").exists(), "it was not started");
    scene.run(&["--data", "data", "--no-boot", "--unguarded"], &command).succeeds();
}

// Holds: L24
#[test]
fn what_was_acknowledged_is_there_after_a_power_cut_and_the_note_says_where_it_is() {
    let place = Place::new();
    let of = format!("of={STORE}");
    let mut program = Writer::PROGRAM;
    program[1] = &of;
    let mut run = place.command(&["run", "--pool", place.pool(), "--data", ".", "--"]);
    run.args(program);
    let mut writer = Writer::start_on(&place, run, STORE);
    writer.write(10);
    kill_everything(&place, writer);
    let note = place.file(NOTE);
    let text = fs::read_to_string(&note).expect("the note is beside the file");
    assert!(text.contains(place.pool()) && text.contains("seawall recover --pool"), "{text}");
    let guards = place.seawall(&["guard", "."]);
    assert!(guards.succeeds().out.contains(NOTE), "{}", guards.out);
    // Another pool may not have the directory.
    let other = place.ram("other.pool");
    place.seawall(&["init", &other, "--size", "16M", "--emulated"]).succeeds();
    let by_other = ["run", "--pool", &other, "--data", ".", "--"];
    let dd = ["dd", "if=/dev/zero", "of=another.dat", "bs=4096", "count=2", "oflag=dsync", "status=none"];
    let said = place.seawall(&[&by_other[..], &dd].concat());
    said.fails(125, &[NOTE, "belongs to the pool", place.pool()]);

    lose_memory(&place, STORE);
    recover(&place, &place.pool).succeeds();
    assert_eq!(Writer::found_in(&place, STORE), 10);
    assert!(!note.exists(), "everything is in the file");
}

#[test]
fn the_program_does_not_see_the_note_and_sqlite_has_its_own_guard() {
    if !has("sqlite3") {
        return;
    }
    let scene = Scene::new(Place::new());
    let script = format!(
        "{} append data/x 9; ls -a data > seen; \
         sqlite3 data/a.db 'pragma journal_mode=persist; create table t(x); insert into t values(1); \
         insert into t values(2); insert into t values(3); insert into t values(4)'; \
         {SEAWALL} status --json --pool {} > status.json; sqlite3 data/a.db 'select sum(x) from t' > sum",
        scene.program,
        scene.place.pool()
    );
    scene.run(&["--preset", "any", "--data", "data"], &["sh", "-c", &script]).succeeds();
    let read = |name| fs::read_to_string(scene.place.file(name)).expect("written");
    assert!(!read("seen").contains(NOTE) && read("seen").contains('x'), "{}", read("seen"));
    assert_eq!(read("sum"), "10\n");
    let status: Value = serde_json::from_str(&read("status.json")).expect("JSON");
    assert_eq!(status["guards"], 2, "the note, and SQLite's: {status}");
    let left = fs::read_dir(scene.place.file("data")).expect("read").flatten();
    let mut left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    left.sort();
    assert_eq!(left, ["a.db", "a.db-journal", "x"]);
}

#[test]
fn on_a_mount_too() {
    let Some(m) = Mounts::new() else { return };
    m.mount_with("backing", "at", "any", &[]).succeeds();
    let program = cc(&m.place, "any", include_str!("programs/any.c"), &["-O1"]).expect("a C compiler");
    for how in ["append", "reopen", "dsync"] {
        let file = m.at(&format!("{how}.dat"));
        let done = Command::new(&program).arg(how).arg(&file).arg("20").status();
        assert!(done.expect("it starts").success(), "{how}");
        wait_for("the file in the log", || m.state(&format!("{how}.dat"))["preset"] == "any");
    }
    m.umount().succeeds();
    assert!(!m.behind(NOTE).exists());
}
