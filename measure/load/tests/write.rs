//! The write load verifies itself, and its checker catches what it is there to catch.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output};

use seawall_load::block::{Tag, stamp};
use seawall_load::write::Report;
use seawall_load::write::verify::Checked;

const BS: u64 = 4096;

fn load(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_seawall-load")).args(args).output().expect("run seawall-load")
}

fn write(dir: &Path, args: &[&str]) -> Report {
    let dir_arg = dir.to_str().expect("UTF-8 path");
    let saved = format!("{dir_arg}/expectation.json");
    let mut all = vec!["write", "--dir", dir_arg, "--bs", "4096", "--size", "1M", "--warmup", "3"];
    all.extend(["--save-expectation", &saved]);
    all.extend(args);
    let out = load(&all);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("a report")
}

fn check(dir: &Path) -> (bool, Checked) {
    let dir_arg = dir.to_str().expect("UTF-8 path");
    let out =
        load(&["check-write", "--dir", dir_arg, "--expectation", &format!("{dir_arg}/expectation.json")]);
    (out.status.success(), serde_json::from_slice(&out.stdout).expect("a verdict"))
}

#[test]
fn every_shape_of_load_verifies() {
    for pattern in ["sequential", "random", "append"] {
        for layout in ["shared", "private"] {
            for (threads, processes) in [("1", "1"), ("3", "1"), ("1", "3"), ("2", "2")] {
                let dir = tempfile::tempdir().expect("temporary directory");
                let shape = ["--pattern", pattern, "--layout", layout, "--threads", threads];
                let report =
                    write(dir.path(), &[&shape[..], &["--processes", processes, "--ops", "96"]].concat());
                let name = format!("{pattern} {layout} {threads}x{processes}");
                assert_eq!(report.ops, 96, "{name}");
                assert_eq!(report.verified.errors, 0, "{name}: {:?}", report.verified);
                assert!(report.verified.blocks > 0 && report.latency.max_us > 0.0, "{name}");
                assert!(check(dir.path()).0, "{name}");
            }
        }
    }
}

#[test]
fn a_second_run_over_old_content_verifies() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for _ in 0..2 {
        assert_eq!(write(dir.path(), &["--ops", "20"]).verified.errors, 0);
    }
}

#[test]
fn a_corrupted_block_is_caught() {
    let dir = tempfile::tempdir().expect("temporary directory");
    write(dir.path(), &["--pattern", "sequential", "--ops", "256"]);
    let file = OpenOptions::new().write(true).open(dir.path().join("load.dat")).expect("data file");
    file.write_all_at(b"garbage", 5 * BS + 1000).expect("plant damage");
    let (clean, checked) = check(dir.path());
    assert!(!clean);
    assert_eq!(checked.errors, 1);
    assert!(checked.examples[0].contains("block 5: checksum"), "{:?}", checked.examples);
}

#[test]
fn a_lost_write_is_caught_although_the_older_block_is_whole() {
    let dir = tempfile::tempdir().expect("temporary directory");
    write(dir.path(), &["--pattern", "sequential", "--ops", "256"]);
    let mut older = vec![0; BS as usize];
    stamp(&mut older, Tag { number: 7, seq: 1, writer: 0 });
    let file = OpenOptions::new().write(true).open(dir.path().join("load.dat")).expect("data file");
    file.write_all_at(&older, 7 * BS).expect("plant a stale block");
    let (clean, checked) = check(dir.path());
    assert!(!clean);
    assert!(checked.examples[0].contains("block 7: holds sequence 1"), "{:?}", checked.examples);
}

#[test]
fn a_lost_append_is_caught() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let report = write(dir.path(), &["--pattern", "append", "--ops", "20"]);
    let file = OpenOptions::new().write(true).open(dir.path().join("load.dat")).expect("data file");
    file.set_len((report.verified.blocks - 1) * BS).expect("cut the last block off");
    let (clean, checked) = check(dir.path());
    assert!(!clean);
    assert!(checked.examples[0].contains("appended 23 blocks, 22 are there"), "{:?}", checked.examples);
}

#[test]
fn wrong_options_are_explained() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let dir_arg = dir.path().to_str().expect("UTF-8 path");
    for (args, word) in [
        (&["--ops", "1", "--bs", "100"][..], "multiple of 8"),
        (&["--ops", "1", "--size", "4K"][..], "less than one block"),
        (&["--pattern", "random"][..], "--seconds"),
        (&["--ops", "1", "--threads", "0"][..], "at least 1"),
    ] {
        let out = load(&[&["write", "--dir", dir_arg][..], args].concat());
        assert_eq!(out.status.code(), Some(2));
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert!(stderr.contains(word), "{stderr}");
    }
}
