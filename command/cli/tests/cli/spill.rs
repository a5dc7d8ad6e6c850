//! A small pool with a spill area, by the command: made, used, shown, refused, recovered.

use std::fs;

use crate::common::disk::LoopDevice;
use crate::common::mounts::{Mounts, tracked};
use crate::common::{Place, Said, Writer, is_root, kill, kill_everything, wait_for, wait_for_end};
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// A place whose pool is as small as they come, with an area beside the data.
fn with_area() -> Place {
    let place = Place::bare();
    let area = area_of(&place);
    let init = ["init", place.pool(), "--emulated", "--size", "16M", "--spill", &area, "--spill-size", "64M"];
    place.seawall(&init).succeeds();
    place
}

fn area_of(place: &Place) -> String {
    place.data.path().join("area").display().to_string()
}

fn shows(said: &Said, words: &[&str]) {
    said.succeeds();
    words.iter().for_each(|word| assert!(said.out.contains(word), "no {word:?} in:\n{}", said.out));
}

/// Writes bursts until the disk was too slow for one; what the last one wrote. Root makes it too slow for the first.
fn spilled(place: &Place) -> Vec<u8> {
    let _destaging = is_root().then(|| Stopped::thread_of(place.daemon().expect("a daemon"), "destage"));
    let mut content = Vec::new();
    wait_for("a burst that the disk is too slow for", || {
        content = burst(place);
        place.status()["spill"]["spilled_bytes"].as_u64() > Some(0)
    });
    content
}

/// Twice as much as the pool, in a burst.
fn burst(place: &Place) -> Vec<u8> {
    let content: Vec<u8> =
        (0..32u64 << 20).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 | 1).collect();
    let from = place.file("reference");
    fs::write(&from, &content).expect("written");
    let (from, to) = (format!("if={}", from.display()), "of=burst-wal");
    place.run(&["dd", &from, to, "bs=64k", "conv=notrunc", "oflag=dsync", "status=none"]).succeeds();
    content
}

#[test]
fn a_burst_larger_than_the_pool_survives_the_death_of_everybody() {
    let place = with_area();
    shows(&place.seawall(&["inspect", place.pool()]), &["spill area", &area_of(&place)]);
    let mut writer = Writer::start(&place);
    writer.write(20);
    let content = spilled(&place);
    let spill = place.status()["spill"].clone();
    assert_eq!(spill["path"], area_of(&place));
    assert!(spill["size"].as_u64() > Some(60 << 20) && spill["trouble"].is_null(), "{spill}");
    shows(&place.seawall(&["status", "--pool", place.pool()]), &["spill area", "copied to it"]);
    kill_everything(&place, writer);
    place.seawall(&["verify", place.pool()]).succeeds();
    place.seawall(&["recover", "--pool", place.pool(), "--replay"]).succeeds();
    assert_eq!(Writer::found(&place), 20);
    assert!(fs::read(place.file("burst-wal")).expect("read") == content);
}

/// The machine goes on, the memory of the log is there: nothing but the area is missing.
// Holds: R17
#[test]
fn an_area_that_is_gone_with_commits_in_it_is_asked_for() {
    if !is_root() {
        return; // Others may not trace.
    }
    let place = with_area();
    let (area, away) = (area_of(&place), area_of(&place) + "-away");
    let mut writer = Writer::start(&place);
    writer.write(20);
    kill_with_commits_in_the_area(&place, writer);
    fs::rename(&area, &away).expect("moved away");
    let recover = ["recover", "--pool", place.pool(), "--replay"];
    place.seawall(&recover).fails(1, &["are in the spill area", &area, "bring the area back"]);
    place.run(&["true"]).fails(125, &["are in the spill area", &area]);
    fs::rename(&away, &area).expect("brought back");
    place.seawall(&recover).succeeds();
    assert_eq!(Writer::found(&place), 20);
}

/// Kills everybody after a burst of which nothing reached the files, so that some of it is in the area alone.
fn kill_with_commits_in_the_area(place: &Place, writer: Writer) {
    let (program, daemon) = (writer.pid(), place.daemon().expect("a daemon"));
    let destaging = Stopped::thread_of(daemon, "destage");
    burst(place);
    // Counted a moment after they are there.
    wait_for("commits in the area", || place.status()["spill"]["used"].as_u64() > Some(0));
    // In this order: whoever finds no daemon starts another one.
    [writer.run.id().into(), program.into(), daemon].into_iter().for_each(kill);
    destaging.has_ended();
    [program.into(), daemon].into_iter().for_each(wait_for_end);
}

/// A thread that is traced and goes no further. It waits for work, so it has nothing that others need.
struct Stopped(Pid);

impl Stopped {
    fn thread_of(process: u64, name: &str) -> Self {
        let tasks = format!("/proc/{process}/task");
        let read = |tid: &str, what: &str| fs::read_to_string(format!("{tasks}/{tid}/{what}"));
        let is_it = |tid: &String| read(tid, "comm").is_ok_and(|comm| comm.trim() == name);
        let names = fs::read_dir(&tasks)
            .expect("threads")
            .filter_map(|task| task.ok()?.file_name().into_string().ok());
        let tid = names.into_iter().find(is_it).expect("such a thread");
        wait_for("a thread that waits", || read(&tid, "wchan").is_ok_and(|at| at.starts_with("futex")));
        let tid = Pid::from_raw(tid.parse().expect("a number"));
        ptrace::seize(tid, ptrace::Options::empty()).and_then(|()| ptrace::interrupt(tid)).expect("traced");
        let seen = waitpid(tid, Some(WaitPidFlag::__WALL)).expect("it stops");
        assert!(matches!(seen, WaitStatus::PtraceEvent(..) | WaitStatus::Stopped(..)), "{seen:?}");
        Self(tid)
    }

    /// Until its tracer has heard that it has ended, its process is not gone.
    fn has_ended(self) {
        let _ = waitpid(self.0, Some(WaitPidFlag::__WALL));
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = ptrace::detach(self.0, None);
    }
}

// Holds: R18
#[test]
fn an_area_that_is_gone_and_was_empty_is_told_of_and_does_without() {
    let place = with_area();
    fs::remove_file(area_of(&place)).expect("removed");
    let mut writer = Writer::start(&place);
    writer.write(3);
    wait_for("status to show the trouble", || place.status()["spill"]["trouble"].is_string());
    shows(&place.seawall(&["status", "--pool", place.pool()]), &["spill area", "FAILED"]);
    writer.finish().succeeds();
    place.seawall(&["verify", place.pool()]).succeeds();
    assert_eq!(Writer::found(&place), 3);
}

#[test]
fn what_cannot_have_an_area_is_refused_and_nothing_is_made() {
    let place = Place::bare();
    let area = area_of(&place);
    let block = place.data.path().join("log").display().to_string();
    place.seawall(&["init", "--block", &block, "--size", "16M", "--spill", &area]).fails(2, &["--spill"]);
    let small =
        ["init", place.pool(), "--emulated", "--size", "16M", "--spill", &area, "--spill-size", "100K"];
    place.seawall(&small).fails(1, &["a spill area behind a pool of this size may have", "--spill-size"]);
    fs::write(&area, "somebody's").expect("written");
    let taken = ["init", place.pool(), "--emulated", "--size", "16M", "--spill", &area];
    place.seawall(&taken).fails(1, &["cannot make the spill area", "Name a file that does not exist yet"]);
    assert_eq!(fs::read(&area).expect("kept"), b"somebody's");
    assert!(!fs::exists(place.pool()).expect("asked") && !fs::exists(&block).expect("asked"));
}

/// A loop device stands for a partition of a fast disk.
#[test]
fn a_device_that_holds_nothing_can_be_an_area() {
    let Some(device) = LoopDevice::new(80 << 20) else { return };
    let (place, device) = (Place::bare(), device.path());
    let init = ["init", place.pool(), "--emulated", "--size", "16M", "--spill", device];
    fs::write(device, "somebody's data").expect("written");
    let sized = [&init[..], &["--spill-size", "64M"]].concat();
    place.seawall(&sized).fails(1, &["first MiB is not empty", "--force"]);
    place.seawall(&init).fails(1, &["has no room"]);
    place.seawall(&[&sized[..], &["--force"]].concat()).succeeds();
    let mut writer = Writer::start(&place);
    writer.write(20);
    let content = spilled(&place);
    let status = place.status();
    assert_eq!(status["spill"]["path"], device, "{status}");
    kill_everything(&place, writer);
    place.seawall(&["recover", "--pool", place.pool(), "--replay"]).succeeds();
    assert_eq!(Writer::found(&place), 20);
    assert!(fs::read(place.file("burst-wal")).expect("read") == content);
    let other = format!("{}2", place.pool());
    let taken = ["init", &other, "--emulated", "--size", "16M", "--spill", device, "--spill-size", "64M"];
    place.seawall(&taken).fails(1, &["a spill area of Seawall"]);
    assert!(!fs::exists(&other).expect("asked"));
}

#[test]
fn a_mount_makes_a_pool_with_an_area() {
    let Some(m) = Mounts::bare() else { return };
    let area = area_of(&m.place);
    m.mount_with("backing", "at", "sqlite", &["--emulated", "--size", "16M", "--spill", &area]).succeeds();
    let file = tracked(&m.at("x-wal"));
    let status = m.place.status();
    assert_eq!(status["spill"]["path"], area.as_str(), "{status}");
    drop(file);
    m.umount().succeeds();
    assert_eq!(fs::read(m.behind("x-wal")).expect("the file"), [2; 8192]);
}

#[test]
fn a_pool_that_is_there_is_given_no_area() {
    let place = Place::bare();
    place.seawall(&["init", place.pool(), "--emulated", "--size", "16M"]).succeeds();
    let area = area_of(&place);
    let data = place.data.path().display().to_string();
    let run = [
        "run",
        "--pool",
        place.pool(),
        "--spill",
        &area,
        "--preset",
        "sqlite",
        "--data",
        &data,
        "--",
        "true",
    ];
    place.seawall(&run).fails(125, &["without a spill area", "only a new pool can get one"]);
    assert!(!fs::exists(&area).expect("asked"));
}
