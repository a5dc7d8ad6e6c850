//! Limits that a container or an administrator sets: what does not fit them is said in plain words.

mod common;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Place, SEAWALL, Said, has, is_root};

const RUN: [&str; 4] = ["--preset", "sqlite", "--data", "."];
const WRITE: [&str; 7] =
    ["dd", "if=/dev/zero", "of=x-wal", "bs=4096", "count=2", "oflag=dsync", "status=none"];

fn limited(place: &Place, limit: &str) -> Said {
    let mut command = Command::new("prlimit");
    command.args([limit, SEAWALL, "run", "--pool", place.pool()]).args(RUN).arg("--").args(WRITE);
    command.current_dir(place.data.path()).env_remove("LD_PRELOAD").output().expect("runs").into()
}

#[test]
fn a_limit_that_is_too_small_is_named() {
    if !has("prlimit") {
        return;
    }
    let place = Place::new();
    let begin = Instant::now();
    limited(&place, "--nofile=12:12").fails(125, &["open files", "is 12", "needs 64"]);
    limited(&place, "--as=62914560:62914560").fails(125, &["address space", "is 62914560", "raise it"]);
    assert!(begin.elapsed() < Duration::from_secs(10), "nobody waits for a daemon that is none");
    limited(&place, "--nofile=64:64").succeeds();
    limited(&place, "--as=268435456:268435456").succeeds();
    limited(&place, "--memlock=0:0").succeeds();
}

#[test]
fn a_run_time_directory_whose_name_is_too_long_is_passed_over() {
    let place = Place::new();
    let long = place.file(&"x".repeat(150));
    fs::create_dir(&long).expect("made");
    let with = |words: &[&str]| {
        let mut command = place.command(words);
        Said::from(command.env("XDG_RUNTIME_DIR", &long).output().expect("runs"))
    };
    let run = ["run", "--pool", place.pool()];
    let said = with(&[&run[..], &RUN, &["--"], &WRITE].concat());
    said.succeeds();
    assert!(!said.err.contains("not active"), "{}", said.err);
    let status = format!("{SEAWALL} status --json --pool {} > status.json", place.pool());
    let both = format!("{}; {status}", WRITE.join(" "));
    with(&[&run[..], &RUN, &["--", "sh", "-c", &both]].concat()).succeeds();
    let status: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(place.file("status.json")).expect("asked")).expect("JSON");
    assert!(status["files"][0]["writes"].as_u64() > Some(0), "it was served: {status}");
}

#[test]
fn a_container_without_a_writable_directory_but_memory_is_served() {
    if !is_root() || !has("unshare") {
        return;
    }
    let place = Place::new();
    let script = r#"
        mount --bind "$PWD" "$PWD" && cd "$PWD"
        mount -o remount,ro,bind / && mount -t tmpfs -o ro none /run && mount -t tmpfs -o ro none /tmp || exit 77
        exec "$@"
    "#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh", SEAWALL, "run", "--pool"]);
    command.arg(place.pool()).args(RUN).arg("--").args(WRITE);
    let said =
        Said::from(command.current_dir(place.data.path()).env_remove("LD_PRELOAD").output().expect("runs"));
    if said.code != Some(77) {
        said.succeeds();
        assert!(!said.err.contains("not active"), "{}", said.err);
    }
}
