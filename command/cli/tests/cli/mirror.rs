//! A log on two devices, as its user meets it: made, run on, one of them fails, killed, rebuilt, refused.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::common::mirrors::{Failing, lose_memory, mirrored, recover, ring, text};
use crate::common::{Writer, kill_everything, wait_for};

// Holds: R16
#[test]
fn either_copy_brings_back_what_was_committed() {
    let (place, second) = mirrored();
    let mut writer = Writer::start(&place);
    writer.write(20);
    let mirror = &place.status()["journal"]["mirror"];
    assert_eq!(mirror["copies"][0]["written"], true, "{mirror}");
    assert_eq!(mirror["copies"][1]["written"], true, "{mirror}");
    assert!(mirror["copies"][1]["path"].as_str().expect("a path").ends_with("second.log"));
    kill_everything(&place, writer);
    lose_memory(&place, "x-wal");
    // One of them lost everything behind its anchors.
    let first = File::options().write(true).open(&place.pool).expect("the log");
    first.write_all_at(&vec![0x5a; 1 << 20], 8192).expect("garbled");
    recover(&place, &place.pool).succeeds();
    assert_eq!(Writer::found(&place), 20);
    assert_eq!(ring(&place.pool), ring(&second), "made equal");
    for path in [&place.pool, &second] {
        place.seawall(&["verify", text(path)]).succeeds();
    }
    // A daemon that dies meanwhile is replaced, whichever copy it was started with.
    fs::remove_file(place.file("x-wal")).expect("removed");
    let mut writer = Writer::start(&place);
    writer.outlives(2, &place);
    writer.finish().succeeds();
    assert_eq!(place.in_memory(), Vec::<PathBuf>::new());
}

// Holds: R12
#[test]
fn a_copy_that_fails_is_left_behind_and_rebuilt_and_never_believed_before() {
    let (place, second) = mirrored();
    let mut writer = Writer::start(&place);
    writer.write(5);
    let Some(failing) = Failing::new(&second) else {
        writer.finish().succeeds();
        return; // Nothing here can be made to fail.
    };
    writer.write(5);
    let status = place.status();
    assert_eq!(status["journal"]["mirror"]["copies"][1]["written"], false, "{status}");
    assert_eq!(status["journal"]["failed"], 0);
    let shown = place.seawall(&["status", "--pool", place.pool()]);
    assert!(shown.out.contains("MIRROR LOST") && shown.out.contains("second.log"), "{}", shown.out);
    let log = PathBuf::from(status["log"].as_str().expect("a path"));
    wait_for("the daemon's log", || {
        fs::read_to_string(&log).is_ok_and(|log| log.contains("THE LOG LOST ITS COPY"))
    });
    kill_everything(&place, writer);
    drop(failing);
    lose_memory(&place, "x-wal");
    // Only the stale one comes back.
    let away = place.data.path().join("away");
    fs::rename(&place.pool, &away).expect("moved");
    recover(&place, &second).fails(1, &["seawall.log", "is missing", "may hold more", "--alone"]);
    fs::rename(&away, &place.pool).expect("moved back");
    // By whichever path it is opened.
    recover(&place, &second).succeeds();
    assert_eq!(Writer::found(&place), 10);
    assert_eq!(ring(&place.pool), ring(&second), "rebuilt");
    place.run(&["true"]).succeeds();
}

#[test]
fn a_lost_copy_is_replaced_by_another_one() {
    let (place, second) = mirrored();
    let third = place.data.path().join("third.log");
    let mirror = |words: &[&str]| place.seawall(&[&["mirror", "--pool", place.pool()], words].concat());
    mirror(&["--on", text(&third)]).fails(1, &["is already mirrored"]);
    fs::remove_file(&second).expect("removed");
    place.run(&["true"]).fails(125, &["second.log", "is missing", "seawall mirror --alone"]);
    mirror(&["--alone"]).succeeds();
    place.run(&["true"]).succeeds();
    let mut writer = Writer::start(&place);
    writer.write(3);
    mirror(&["--alone"]).fails(1, &["in use by a running daemon"]);
    kill_everything(&place, writer);
    mirror(&["--on", text(&third)]).fails(1, &["was not closed", "seawall recover"]);
    place.seawall(&["recover", "--pool", place.pool()]).succeeds();
    assert!(mirror(&["--on", text(&third)]).out.contains("is mirrored on"));
    fs::remove_file(place.file("x-wal")).expect("removed");
    assert_eq!(ring(&place.pool), ring(&third));
    let mut writer = Writer::start(&place);
    writer.write(3);
    writer.finish().succeeds();
}

// Holds: R20
#[test]
fn a_mirror_that_cannot_be_is_refused_before_anything_is_made() {
    let (place, second) = mirrored();
    let run = |block: &str, mirror: &str| {
        let words = ["run", "--block", block, "--mirror", mirror, "--size", "16M"];
        place.seawall(&[&words[..], &["--preset", "sqlite", "--data", ".", "--", "true"]].concat())
    };
    run(place.pool(), text(&second)).succeeds();
    run(place.pool(), "elsewhere.log").fails(125, &["is mirrored on", "not on elsewhere.log"]);
    run("new.log", text(&second)).fails(125, &["it is a log, or a copy of one"]);
    fs::write(place.file("other"), "something").expect("written");
    run("new.log", "other").fails(125, &["already exists"]);
    run("new.log", &place.ram("x")).fails(125, &["RAM"]);
    assert!(!place.file("new.log").exists());
    run("new.log", "new2.log").succeeds();
    place.seawall(&["init", "pool", "--size", "16M", "--mirror", "x"]).fails(2, &["--block"]);
}
