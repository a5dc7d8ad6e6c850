//! Directories and files that cannot be managed.

use crate::common;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::common::{Place, Writer, is_root, kill, wait_for_end};

/// What the daemon's log says at the end of a run that copies 4 KiB into `name`, synced.
fn log_after_write(place: &Place, name: &str) -> String {
    let copy = format!("dd if=/dev/zero of={name} bs=4096 count=1 conv=notrunc,fsync status=none");
    let script = format!("{copy} && {} status --json --pool {}", common::SEAWALL, place.pool());
    let status = place.run(&["sh", "-c", &script]).json();
    fs::read_to_string(status["log"].as_str().expect("a path")).expect("the log")
}

#[test]
fn a_directory_that_vanished() {
    let place = Place::new();
    let gone = ["run", "--pool", place.pool(), "--preset", "sqlite", "--data", "gone", "--", "true"];
    place.seawall(&gone).fails(125, &["gone", "if the directory has moved", "--data"]);
}

#[test]
fn a_pgdata_that_is_none() {
    let place = Place::new();
    let run = ["run", "--pool", place.pool(), "--preset", "postgres", "--data", ".", "--", "true"];
    place.seawall(&run).fails(125, &["not a PGDATA", "initdb"]);
}

// Holds: R25
#[test]
fn a_file_system_without_stable_handles() {
    let place = Place::new();
    let run = ["run", "--pool", place.pool(), "--preset", "sqlite", "--data", "/proc", "--", "true"];
    place.seawall(&run).fails(125, &["/proc", "file handles", "ext4"]);
}

#[test]
fn a_directory_of_another_user() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    fs::set_permissions(place.data.path(), fs::Permissions::from_mode(0o755)).expect("opened");
    fs::create_dir(place.file("theirs")).expect("made");
    let pool = "/dev/shm/seawall-test-nobody.pool";
    let copy = place.data.path().join("bin");
    fs::create_dir(&copy).expect("made");
    for name in ["seawall", "libseawall_preload.so"] {
        let from = std::path::Path::new(common::SEAWALL).with_file_name(name);
        common::copied_program(from, copy.join(name));
    }
    let mut run = std::process::Command::new(copy.join("seawall"));
    run.args(["run", "--user", "nobody", "--emulated", "--size", "16M", "--pool", pool]);
    run.args(["--preset", "sqlite", "--data", "theirs", "--", "true"]).current_dir(place.data.path());
    let said = common::Said::from(run.output().expect("runs"));
    let _ = fs::remove_file(pool);
    said.fails(125, &["belongs to user 0", "--user"]);
}

#[test]
fn a_read_only_file_is_left_to_the_kernel() {
    let place = Place::new();
    fs::write(place.file("x-wal"), "").expect("made");
    fs::set_permissions(place.file("x-wal"), fs::Permissions::from_mode(0o444)).expect("closed");
    if !is_root() {
        return;
    }
    let log = log_after_write(&place, "x-wal");
    assert!(log.contains("x-wal: it is read-only"), "{log}");
    assert!(!place.guard().exists(), "nothing can be in the log");
}

#[test]
fn a_file_of_another_user_is_left_to_the_kernel() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    fs::write(place.file("x-wal"), "").expect("made");
    std::os::unix::fs::chown(place.file("x-wal"), Some(65534), None).expect("given away");
    let log = log_after_write(&place, "x-wal");
    assert!(log.contains("it belongs to user 65534"), "{log}");
}

#[test]
fn a_file_that_moved_is_found_again_and_one_that_is_gone_is_named() {
    let place = Place::new();
    for (gone, expected) in [(false, 0), (true, 1)] {
        let mut writer = Writer::start(&place);
        writer.write(3);
        let (program, daemon) = (writer.pid(), place.daemon().expect("a daemon"));
        // The daemon first: it must not bring anything to the file any more.
        kill(writer.run.id().into());
        kill(daemon);
        writer.write(20);
        kill(program.into());
        writer.run.wait().expect("reaped");
        wait_for_end(program.into());
        wait_for_end(daemon);
        fs::rename(place.file("x-wal"), place.file("moved")).expect("moved");
        if gone {
            fs::remove_file(place.file("moved")).expect("removed");
        }
        let recover = ["recover", "--pool", place.pool(), "--json"];
        let said = place.seawall(&recover);
        assert_eq!(said.code, Some(expected), "{}{}", said.out, said.err);
        if gone {
            said.says(&["x-wal", "--accept-loss"]);
            assert!(place.guard().exists(), "refused: the guard stays up");
            place.seawall(&[&recover[..], &["--accept-loss"]].concat()).succeeds();
        }
        assert!(!place.guard().exists());
        let _ = fs::remove_file(place.file("moved"));
    }
}
