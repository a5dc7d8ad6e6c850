//! A pool on a block device, as its user meets it: made, run on, killed, looked at, refused.

use crate::common;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use crate::common::disk::LoopDevice;
use crate::common::{Place, Said, Writer, kill, kill_everything, signal, wait_for, wait_for_end};

/// A place whose pool is a log of 16 MiB on a disk.
fn on_disk() -> Place {
    Place::on_disk("16M")
}

fn device_writes(place: &Place) -> u64 {
    place.status()["journal"]["device_writes"].as_u64().expect("a log on a device")
}

#[test]
fn commits_are_on_the_device_and_nothing_is_left_in_memory_after_a_clean_end() {
    let place = on_disk();
    let mut writer = Writer::start(&place);
    writer.write(1);
    let before = device_writes(&place);
    writer.write(20);
    let status = place.status();
    assert_eq!(status["medium_name"], "block");
    assert_eq!(status["medium"], "block (survives power loss if the device honours flush)");
    assert!(status["because"].as_str().expect("a reason").contains("power-loss protection unknown"));
    let journal = &status["journal"];
    assert!(device_writes(&place) >= before + 20, "each write was synced: {journal}");
    assert!(journal["waits"].as_u64() >= Some(20) && journal["failed"] == 0, "{journal}");
    assert_eq!(place.in_memory().len(), 2, "image and run-time memory");
    writer.finish().succeeds();
    assert_eq!(place.daemon(), None);
    assert_eq!(place.in_memory(), Vec::<PathBuf>::new());
    place.seawall(&["verify", place.pool()]).succeeds();
}

/// Bytes that nobody syncs are on the device a moment later; then the device is left alone.
// Holds: L20
#[test]
fn what_nobody_syncs_is_hardened_and_an_idle_log_writes_nothing() {
    let place = on_disk();
    let mut unsynced =
        place.run_command(&["dd", "of=x-wal", "bs=4096", "iflag=fullblock", "conv=notrunc", "status=none"]);
    let mut writer = Writer::start(&place);
    writer.write(3);
    unsynced.stdin(Stdio::piped());
    let mut run = unsynced.spawn().expect("seawall starts");
    let bytes = || place.status()["journal"]["data_bytes"].as_u64().expect("a log on a device");
    let before = bytes();
    std::io::Write::write_all(run.stdin.as_mut().expect("piped"), &[7; 4 * 4096]).expect("it lives");
    wait_for("the daemon to harden", || bytes() >= before + 4 * 4096);
    let mut writes = device_writes(&place);
    wait_for("an idle device", || {
        std::thread::sleep(std::time::Duration::from_millis(500));
        std::mem::replace(&mut writes, device_writes(&place)) == device_writes(&place)
    });
    drop(run.stdin.take());
    assert!(run.wait().expect("ended").success());
    writer.finish().succeeds();
}

// Holds: internals/FAILURE_MODEL#what-each-medium-survives
#[test]
fn everything_killed_and_run_recovers_by_itself() {
    let place = on_disk();
    let mut writer = Writer::start(&place);
    writer.write(20);
    kill_everything(&place, writer);
    assert!(place.guard().exists());
    place.seawall(&["verify", place.pool()]).succeeds();
    assert_eq!(place.in_memory().len(), 2);
    place.run(&["true"]).succeeds();
    assert!(!place.guard().exists());
    assert_eq!(place.in_memory(), Vec::<PathBuf>::new());
    assert_eq!(Writer::found(&place), 20);
}

/// As after a power cut: memory is lost, the file is as old as the disk left it, the journal is all there is.
// Holds: internals/FAILURE_MODEL#what-each-medium-survives
#[test]
fn without_memory_the_journal_brings_every_commit_back() {
    let place = on_disk();
    let mut writer = Writer::start(&place);
    writer.write(20);
    kill_everything(&place, writer);
    place.in_memory().iter().for_each(|path| fs::remove_file(path).expect("removed"));
    let file = fs::File::options().write(true).open(place.file("x-wal")).expect("the file");
    // The first sync of a new file is real: its first block was on the disk.
    std::os::unix::fs::FileExt::write_all_at(&file, &[0; 19 * 4096], 4096).expect("rolled back");
    let report = place.seawall(&["recover", "--replay", "--json", "--pool", place.pool()]).json();
    assert_eq!(report["replayed"], true);
    assert_eq!(Writer::found(&place), 20);
    place.run(&["true"]).succeeds();
}

#[test]
fn a_dead_daemon_is_replaced_and_the_log_goes_on() {
    let place = on_disk();
    let mut writer = Writer::start(&place);
    writer.outlives(2, &place);
    writer.finish().succeeds().says(&["a new one has taken over"]);
    assert_eq!(place.in_memory(), Vec::<PathBuf>::new());
}

/// A process that goes on when this is dropped, by a test that failed as well.
struct Stopped(u32);

impl Stopped {
    fn new(pid: u32) -> Self {
        signal(pid.into(), "STOP");
        Self(pid)
    }

    fn is_still(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0)).expect("it lives");
        stat.contains(") T ")
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal(self.0.into(), "CONT");
    }
}

/// A program that commits all the time, until this is dropped.
struct Busy {
    run: std::process::Child,
    program: u32,
}

impl Busy {
    fn start(place: &Place) -> Self {
        let copy = ["dd", "if=/dev/zero", "of=y-wal", "bs=512", "oflag=dsync", "status=none"];
        let run = place.run_command(&copy).spawn().expect("seawall starts");
        wait_for("its first commit", || fs::metadata(place.file("y-wal")).is_ok_and(|file| file.len() > 0));
        Self { program: common::child(run.id(), "dd"), run }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.run.kill().expect("it lives");
        kill(self.program.into());
        self.run.wait().expect("reaped");
        wait_for_end(self.program.into());
    }
}

/// One that commits all the time is stopped at any moment until it leads then. Whoever commits meanwhile takes its place and
/// does not wait for it; when it goes on it harms nothing, and what both of them wrote is on the device.
// Holds: L22
#[test]
fn who_is_stopped_while_it_leads_holds_nobody_up() {
    let place = on_disk();
    let mut writer = Writer::start(&place);
    writer.write(1);
    let busy = Busy::start(&place);
    let journal = || place.status()["journal"].clone();
    let mut blocks = 1;
    for tries in 0.. {
        assert!(tries < 500, "it never led");
        let stopped = Stopped::new(busy.program);
        wait_for("it to be stopped", || stopped.is_still());
        writer.write(1);
        blocks += 1;
        assert!(stopped.is_still(), "nobody else lets it go on");
        // The write may not be synced yet: its sync waits until somebody takes the place of one that leads.
        let is_named = || journal()["standing_still"] == serde_json::json!([busy.program]);
        if (0..10).any(|_| is_named()) {
            assert_ne!(journal()["replaced"], 0);
            writer.write(20);
            blocks += 20;
            break;
        }
    }
    wait_for("it to go on", || journal()["standing_still"] == serde_json::json!([]));
    writer.write(1);
    blocks += 1;
    drop(busy);
    kill_everything(&place, writer);
    place.in_memory().iter().for_each(|path| fs::remove_file(path).expect("removed"));
    place.seawall(&["recover", "--replay", "--pool", place.pool()]).succeeds();
    assert_eq!(Writer::found(&place), blocks);
}

/// Its memory was removed, as logging out does it: whoever still writes to it must not meet a second writer.
// Holds: L23
#[test]
fn an_image_that_was_removed_is_not_made_again_while_somebody_uses_it() {
    let place = on_disk();
    let mut writer = Writer::start(&place);
    writer.write(5);
    let (program, daemon) = (writer.pid(), place.daemon().expect("a daemon"));
    kill(writer.run.id().into());
    kill(daemon);
    wait_for_end(daemon);
    place.in_memory().iter().for_each(|path| fs::remove_file(path).expect("removed"));
    place.run(&["true"]).fails(125, &["was removed while processes", &program.to_string(), "stop them"]);
    kill(program.into());
    writer.run.wait().expect("reaped");
    wait_for_end(program.into());
    place.run(&["true"]).succeeds();
}

#[test]
fn run_makes_a_log_and_says_what_it_is() {
    let mut place = Place::bare();
    place.pool = place.data.path().join("made.log");
    let run = |place: &Place, words: &[&str]| -> Said {
        let all = [&["run"], words, &["--preset", "sqlite", "--data", ".", "--", "true"]].concat();
        place.seawall(&all)
    };
    run(&place, &["--block", place.pool(), "--size", "16M"])
        .succeeds()
        .says(&["block (survives power loss if the device honours flush)"]);
    run(&place, &["--block", place.pool()]).succeeds();
    run(&place, &["--pool", place.pool()]).succeeds();
    let both = ["--block", place.pool(), "--emulated"];
    run(&place, &both).fails(2, &["cannot be used with"]);
    fs::write(place.file("other"), "something").expect("written");
    run(&place, &["--block", "other"]).fails(125, &["is not a Seawall log"]);
    run(&place, &["--block", "none/log"]).fails(125, &["No such file"]);
    let ram = place.ram("log");
    run(&place, &["--block", &ram]).fails(125, &["is RAM, and survives no power cut"]);
    place.seawall(&["init", "--block", place.pool()]).fails(1, &["already exists", "--force"]);
    place.seawall(&["init", "--block", place.pool(), "--force", "--size", "16M"]).succeeds();
    place.seawall(&["init", "--block", "huge", "--size", "100T"]).fails(1, &["has no room", "--size"]);
    place.seawall(&["init", "--block", "small", "--size", "1M"]).fails(1, &["too few"]);
}

/// Without a word about a pool. Commands that do not know the data find it all the same.
#[test]
fn without_persistent_memory_the_log_lies_beside_the_data() {
    let mut place = Place::bare();
    place.pool = place.file("db.seawall");
    let notes = place.file("notes");
    let say = |place: &Place, words: &[&str]| -> Said {
        place.command(words).env("SEAWALL_NOTES", &notes).output().expect("seawall starts").into()
    };
    let run = |place: &Place, data: &str, command: &str| {
        fs::create_dir_all(place.file(data)).expect("a directory");
        say(place, &["run", "--size", "16M", "--preset", "sqlite", "--data", data, "--", "sh", "-c", command])
    };
    let made = run(&place, "db", "true");
    made.succeeds().says(&[
        "no persistent memory",
        "db.seawall",
        "block (survives power loss if the device honours flush)",
    ]);
    assert_eq!(fs::read_dir(place.file("db")).expect("the data").count(), 0, "nothing lies in it");
    let looked = run(&place, "db", &format!("{} status", env!("CARGO_BIN_EXE_seawall")));
    looked.succeeds();
    assert_eq!(looked.err.lines().count(), 1, "it was found again: {}", looked.err);
    assert!(looked.out.contains("db.seawall"), "{}", looked.out);
    let mut writer = Writer::start(&place);
    writer.write(20);
    kill_everything(&place, writer);
    say(&place, &["drain"]).fails(1, &["no daemon serves", "db.seawall", "live records"]);
    say(&place, &["recover"]).succeeds();
    assert_eq!(Writer::found(&place), 20);
    say(&place, &["drain"]).succeeds();
    run(&place, "other", "true").succeeds();
    say(&place, &["drain"]).fails(1, &["several pools", "db.seawall", "other.seawall", "--pool"]);
}

#[test]
fn a_log_is_not_made_beside_data_that_is_in_memory_or_over_another_file() {
    let place = Place::bare();
    let ram = place.ram("db");
    let run = |data: &str| {
        fs::create_dir_all(place.file(data)).expect("a directory");
        place.seawall(&["run", "--preset", "sqlite", "--data", data, "--", "true"])
    };
    run(&ram).fails(125, &["nothing was started", "--emulated", "is RAM"]);
    assert!(!std::path::Path::new(&place.ram("db.seawall")).exists());
    fs::write(place.file("mine.seawall"), "something of mine").expect("written");
    run("mine").fails(125, &["nothing was started", "mine.seawall exists and is not a Seawall log"]);
    assert_eq!(fs::read(place.file("mine.seawall")).expect("still there"), b"something of mine");
}

/// A loop device stands for a disk.
#[test]
fn a_device_that_holds_something_is_not_formatted() {
    let Some(device) = LoopDevice::new(80 << 20) else { return };
    let (mut place, device) = (Place::bare(), device.path());
    place.pool = device.into();
    place.seawall(&["init", "--block", device]).fails(1, &["has no room"]);
    place.seawall(&["init", "--block", device, "--size", "16M"]).succeeds();
    place.run(&["true"]).succeeds();
    place.seawall(&["init", "--block", device, "--size", "16M"]).fails(1, &["a Seawall log", "--force"]);
    place.seawall(&["init", "--block", device, "--size", "16M", "--force"]).succeeds();
    let write = |bytes: &[u8]| fs::write(device, bytes).expect("written");
    write(&[0; 8192]);
    write(b"somebody's data");
    place.seawall(&["init", "--block", device, "--size", "16M"]).fails(1, &["first MiB is not empty"]);
    let run = ["run", "--block", device, "--preset", "sqlite", "--data", ".", "--", "true"];
    place.seawall(&run).fails(125, &["is not a Seawall log", "init --block"]);
}
