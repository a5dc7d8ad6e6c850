//! What of a database is to be in the block cache: paths name it, restarts keep it, prewarming brings it beforehand.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::front::BLOCK;
use crate::common::scene::Scene;
use crate::common::{SEAWALL, Said, copied_program, is_root, wait_for};

const BLOCKS: usize = 200;

const CACHE: [&str; 2] = ["--cache", "64M"];

/// Files of SQLite's, of so many blocks.
fn scene(files: &[(&str, usize)]) -> Scene {
    Scene::with(files, &CACHE)
}

// Holds: internals/CACHE#policies-and-prewarming
#[test]
fn a_policy_outlives_the_daemon_and_holds_for_files_to_come() {
    let mut scene = scene(&[("x.db", BLOCKS)]);
    let said = scene.cache(&["keep", "."]);
    said.succeeds();
    assert!(said.out.contains("keep") && said.out.contains("everything else"), "{}", said.out);
    scene.restart(&CACHE);
    assert_eq!(scene.policy(&scene.data)["policy"], "keep");
    fs::write(scene.file("new.db"), vec![2; BLOCKS * BLOCK]).expect("written");
    let mut front = scene.front();
    assert_eq!(front.enter(&scene.file("new.db")), "Ok");
    assert_eq!(front.hits(BLOCKS), 0);
    assert_eq!(front.hits(BLOCKS), BLOCKS);
    let policy = scene.policy(&scene.data);
    assert_eq!(
        (&policy["files"], &policy["blocks"], &policy["kept"]),
        (&json!(1), &json!(BLOCKS), &json!(BLOCKS))
    );
    scene.cache(&["default", "."]).succeeds();
    assert_eq!(scene.policy(&scene.data), Value::Null);
    let others = &scene.cache(&["list", "--json"]).json()["others"];
    assert_eq!((&others["blocks"], &others["kept"]), (&json!(BLOCKS), &json!(0)));
    front.end();
}

// Holds: internals/CACHE#policies-and-prewarming
#[test]
fn a_file_that_is_not_to_be_cached_is_not_and_can_be_again() {
    let scene = scene(&[("x.db", BLOCKS), ("y.db", BLOCKS)]);
    let mut front = scene.front();
    assert_eq!(front.enter(&scene.file("x.db")), "Ok");
    front.hits(BLOCKS);
    assert_eq!(front.hits(BLOCKS), BLOCKS);
    scene.cache(&["none", "x.db"]).succeeds();
    assert_eq!(front.hits(BLOCKS), 0, "also for who has it open");
    assert_eq!(front.hits(BLOCKS), 0, "and nothing of it enters");
    let mut other = scene.front();
    assert_eq!(other.enter(&scene.file("x.db")), "Refused");
    assert_eq!(other.enter(&scene.file("y.db")), "Ok");
    scene.cache(&["default", "x.db"]).succeeds();
    assert_eq!(front.hits(BLOCKS), 0);
    assert_eq!(front.hits(BLOCKS), BLOCKS);
    assert_eq!(other.enter(&scene.file("x.db")), "Ok");
    front.end();
    other.end();
}

/// A file that gets a name with another policy is found out without a word from anybody.
#[test]
fn a_policy_follows_the_name_of_a_file() {
    let scene = scene(&[("x.db", BLOCKS)]);
    fs::create_dir(scene.file("archive")).expect("made");
    let mut front = scene.front();
    assert_eq!(front.enter(&scene.file("x.db")), "Ok");
    front.hits(BLOCKS);
    scene.cache(&["none", "archive"]).succeeds();
    assert_eq!(front.hits(BLOCKS), BLOCKS);
    fs::rename(scene.file("x.db"), scene.file("archive/x.db")).expect("renamed");
    wait_for("the daemon to look", || !front.read(0).0);
    front.end();
}

// Holds: internals/CACHE#policies-and-prewarming
#[test]
fn what_is_prewarmed_is_hit_at_the_first_read() {
    let scene = scene(&[("x.db", BLOCKS), ("y.db", 3), ("x.db-wal", 5)]);
    let said = scene.cache(&["prewarm", "x.db", "--json"]).json();
    assert_eq!(
        (&said["admitted"], &said["present"], &said["not_read"]),
        (&json!(BLOCKS), &json!(0), &json!(0))
    );
    let mut front = scene.front();
    assert_eq!(front.enter(&scene.file("x.db")), "Ok");
    assert_eq!(front.hits(BLOCKS), BLOCKS);
    let said = scene.cache(&["prewarm", ".", "--json"]).json();
    assert_eq!((&said["admitted"], &said["present"]), (&json!(3), &json!(BLOCKS)));
    assert_eq!(said["skipped"], json!([scene.file("x.db-wal")]), "what is not cached, among others");
    scene.cache(&["prewarm", "x.db-wal"]).fails(1, &["x.db-wal", "not cached"]);
    scene.cache(&["none", "y.db"]).succeeds();
    scene.cache(&["prewarm", "y.db"]).fails(1, &["y.db", "`seawall cache default "]);
    let text = scene.cache(&["prewarm", "x.db"]);
    assert!(text.succeeds().out.contains("1.6 MiB were there"), "{}", text.out);
    front.end();
}

/// As many blocks as there is room for, and no other one is driven out; what is to be kept takes its share.
/// A cache of 64 MiB has entries for 64 files.
// Holds: internals/CACHE#policies-and-prewarming
#[test]
fn small_files_do_not_take_the_entry_of_a_large_one() {
    let names: Vec<String> = (0..100).map(|n| format!("a{n}")).collect();
    let small = names.iter().map(|name| (name.as_str(), 1));
    let scene = scene(&small.chain([("z", BLOCKS)]).collect::<Vec<_>>());
    let said = scene.cache(&["prewarm", scene.data.to_str().expect("ASCII"), "--json"]).json();
    assert!(said["admitted"].as_u64() > Some(BLOCKS as u64), "{said}");
    let mut front = scene.front();
    assert_eq!(front.enter(&scene.file("z")), "Ok");
    assert_eq!(front.hits(BLOCKS), BLOCKS);
    front.end();
}

// Holds: internals/CACHE#policies-and-prewarming
#[test]
fn prewarming_ends_where_the_cache_does() {
    const LARGE: usize = 10_000;
    let scene = scene(&[("x.db", LARGE), ("y.db", BLOCKS)]);
    let said = scene.cache(&["prewarm", "x.db", "--json"]).json();
    let admitted = said["admitted"].as_u64().expect("a number");
    assert!((6_500..8_192).contains(&admitted), "{said}");
    assert!(said["not_read"].as_u64() > Some(1_800), "no more is read than could have room: {said}");
    let said = scene.cache(&["prewarm", "y.db", "--json"]).json();
    assert!(said["no_room"].as_u64() > Some(50), "{said}");
    scene.cache(&["keep", "y.db"]).succeeds();
    assert_eq!(scene.cache(&["prewarm", "y.db", "--json"]).json()["no_room"], 0);
    assert_eq!(scene.policy(&scene.file("y.db"))["kept"], json!(BLOCKS));
    let much = scene.cache(&["keep", "x.db"]);
    much.succeeds().says(&["79.7 MiB", "at most"]);
}

#[test]
fn what_cannot_be_said_is_an_error_that_tells_what_to_do() {
    let mut without = Scene::serving(&[]);
    without.cache(&["keep", "."]).fails(1, &["has no block cache", "--cache SIZE"]);
    without.stop();
    without.cache(&["list"]).fails(1, &["no daemon serves", "seawall run --cache SIZE"]);
    let scene = scene(&[("x.db", 1)]);
    scene.cache(&["keep"]).fails(2, &["PATH|TABLE"]);
    scene.cache(&["keep", "nowhere.db/"]).fails(1, &["there is no nowhere.db/", "DB.SCHEMA.TABLE"]);
    let data = scene.data.display().to_string();
    scene
        .cache(&["keep", "/etc/passwd"])
        .fails(1, &["/etc/passwd", "not in a directory of a database", &data]);
    scene.cache(&["keep", "d.s.t"]).fails(1, &["no PostgreSQL server", "runs with this daemon"]);
    scene
        .cache(&["keep", "d.t"])
        .fails(1, &["no MariaDB server", "runs with this daemon", "DB.SCHEMA.TABLE"]);
    scene.cache(&["keep", "nowhere.db"]).fails(1, &["there is no such file here"]);
    assert_eq!(scene.cache(&["list", "--json"]).json()["policies"], json!([]), "nothing was half done");
}

#[test]
fn who_may_not_ask_is_told_who_may() {
    if !is_root() {
        eprintln!("skipped: only root can be somebody else");
        return;
    }
    let scene = scene(&[("x.db", 1)]);
    // Where anybody may start it, and see the pool.
    let program = scene.file("seawall");
    copied_program(SEAWALL, &program);
    let ask = |open: bool| {
        for dir in [&scene.data, scene.place.pool.parent().expect("a directory")] {
            let mode = if open || *dir == *scene.data { 0o755 } else { 0o700 };
            fs::set_permissions(dir, fs::Permissions::from_mode(mode)).expect("changed");
        }
        let mut command = Command::new(&program);
        command.args(["cache", "list", "--pool", scene.place.pool()]).uid(65_534).gid(65_534);
        Said::from(command.output().expect("it starts"))
    };
    ask(true).fails(1, &["belongs to root", "`sudo -u root seawall cache"]);
    ask(false).fails(1, &["cannot find the pool", "Permission denied"]);
}

#[test]
fn policies_that_cannot_be_read_are_left_alone() {
    let mut scene = scene(&[("x.db", BLOCKS)]);
    scene.cache(&["keep", "x.db"]).succeeds();
    let file = format!("{}.cache.policies", scene.place.pool());
    fs::write(&file, "nothing").expect("written");
    scene.restart(&CACHE);
    scene.cache(&["keep", "x.db"]).fails(1, &[&file, "repair or remove"]);
    assert_eq!(fs::read_to_string(&file).expect("there"), "nothing");
    let log = scene.log();
    assert!(log.contains("works without its policies"), "{log}");
}
