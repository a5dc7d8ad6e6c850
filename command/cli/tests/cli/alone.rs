//! A host that reaches too few of its keepers goes on alone, where that was chosen, and comes back to them.

use crate::common;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use crate::common::keepers::Keeper;
use crate::common::mirrors::lose_memory;
use crate::common::pair::{Scene, gets_an_error};
use crate::common::{Place, Said, Writer, kill, kill_everything, wait_for};

/// A place whose log these keep, and that may go on without them.
fn kept_by(keepers: &[Keeper]) -> Place {
    let mut place = Place::bare();
    place.pool = place.data.path().join("seawall.log");
    let pool = place.pool().to_owned();
    let mut init = vec!["init", &pool, "--size", "16M", "--acks", "2", "--mode", "availability"];
    keepers.iter().for_each(|keeper| init.extend(["--keeper", &keeper.address]));
    place.seawall(&init).succeeds();
    place
}

/// A database that writes, and the two keepers of its log.
fn kept_by_two(how: &[&str]) -> ([Keeper; 2], Place, Writer) {
    let keepers = [Keeper::start(how), Keeper::start(how)];
    let place = kept_by(&keepers);
    let writer = Writer::start(&place);
    (keepers, place, writer)
}

fn is_alone(place: &Place) -> bool {
    place.status()["kept"]["alone_s"].is_number()
}

/// The mark of a host that is alone.
fn mark(place: &Place) -> Option<PathBuf> {
    let entries = fs::read_dir(place.data.path()).expect("a directory").flatten();
    entries.map(|entry| entry.path()).find(|path| path.to_string_lossy().contains("/alone-"))
}

/// As after a power cut that comes when the disk has everything.
fn lose_image(place: &Place) {
    place.in_memory().iter().for_each(|path| fs::remove_file(path).expect("removed"));
}

/// Both are lost while a database writes, and it goes on.
fn go_alone(place: &Place, writer: &mut Writer, keepers: &mut [Keeper]) {
    writer.write(5);
    keepers.iter_mut().for_each(Keeper::kill);
    writer.write(2);
    wait_for("it to go on alone", || is_alone(place));
    writer.write(20);
    assert!(mark(place).is_some());
    wait_for("its guard to go", || !place.guard().exists());
}

fn come_back(place: &Place, keepers: &mut [Keeper]) {
    keepers.iter_mut().for_each(Keeper::again);
    wait_for("the keepers to have the log again", || !is_alone(place));
    wait_for("the mark to go", || mark(place).is_none());
    // A new file's first sync is real; this one's next is.
    assert!(place.status()["kept"]["counting"].as_u64() >= Some(2));
}

// Holds: admin/KEEPERS#while-a-host-is-alone
#[test]
fn commits_go_on_without_keepers_and_go_to_them_again_when_they_are_back() {
    let (mut keepers, place, mut writer) = kept_by_two(&[]);
    go_alone(&place, &mut writer, &mut keepers);
    let said = place.seawall(&["status", "--pool", place.pool()]);
    let status = &said.succeeds().out;
    assert!(status.contains("ALONE") && status.contains("on this host's disk alone"), "{status}");
    come_back(&place, &mut keepers);
    writer.write(3);
    wait_for("its guard", || place.guard().exists());
    writer.write(10);
    kill_everything(&place, writer);
    lose_memory(&place, "x-wal");
    let report = place.seawall(&["recover", "--replay", "--json", "--pool", place.pool()]).json();
    assert_eq!(report["dropped"], serde_json::json!([]), "the log of the new turn counts");
    // This test rolls back even what was durable on the disk: what came since is in the log.
    assert!(report["live"].as_u64() >= Some(9), "{report}");
}

// Holds: admin/KEEPERS#while-a-host-is-alone
#[test]
fn an_older_copy_is_not_replayed_over_what_the_disk_has() {
    let (mut keepers, place, mut writer) = kept_by_two(&["--harden", "affirm"]);
    go_alone(&place, &mut writer, &mut keepers);
    kill_everything(&place, writer);
    lose_image(&place);
    // Whatever an older copy has of it must stay out of this.
    let newer = vec![0x77; 27 * 4096];
    fs::write(place.file("x-wal"), &newer).expect("written");
    place.seawall(&["recover", "--pool", place.pool()]).fails(1, &["0 of 2 keepers answered"]);
    keepers.iter_mut().for_each(Keeper::again);
    let said = place.seawall(&["recover", "--replay", "--json", "--pool", place.pool()]).json();
    let dropped = said["dropped"][0].as_str().expect("a file");
    assert!(dropped.contains("x-wal") && dropped.contains("went on without keepers in turn 2"), "{said}");
    assert_eq!(fs::read(place.file("x-wal")).expect("the file"), newer);
    place.run(&["true"]).succeeds();
    assert_eq!(fs::read(place.file("x-wal")).expect("the file"), newer);
    assert_eq!(mark(&place), None, "the keepers have the log again");
}

// Holds: admin/KEEPERS#while-a-host-is-alone
#[test]
fn keepers_that_come_back_with_nothing_get_the_log_again() {
    let (mut keepers, place, mut writer) = kept_by_two(&["--harden", "memory"]);
    go_alone(&place, &mut writer, &mut keepers);
    come_back(&place, &mut keepers);
    writer.write(5);
    // And once more.
    go_alone(&place, &mut writer, &mut keepers);
    come_back(&place, &mut keepers);
    writer.write(5);
    writer.finish().succeeds();
    assert_eq!(Writer::found(&place), 64);
}

// Holds: admin/KEEPERS#while-a-host-is-alone
#[test]
fn a_daemon_that_dies_meanwhile_is_replaced_and_the_next_one_comes_back_to_the_keepers() {
    let (mut keepers, place, mut writer) = kept_by_two(&[]);
    go_alone(&place, &mut writer, &mut keepers);
    let daemon = place.daemon().expect("a daemon");
    kill(daemon);
    writer.write(5);
    wait_for("another daemon", || place.daemon().is_some_and(|pid| pid != daemon));
    assert!(is_alone(&place) && mark(&place).is_some());
    writer.write(5);
    come_back(&place, &mut keepers);
    writer.write(5);
    writer.finish().succeeds();
    assert_eq!(Writer::found(&place), 42);
}

// Holds: admin/KEEPERS#while-a-host-is-alone
#[test]
fn a_daemon_that_starts_without_keepers_goes_on_too() {
    let (mut keepers, place, mut writer) = kept_by_two(&[]);
    writer.write(5);
    keepers.iter_mut().for_each(Keeper::kill);
    let daemon = place.daemon().expect("a daemon");
    kill(daemon);
    writer.write(3);
    wait_for("another daemon, alone", || place.daemon().is_some_and(|pid| pid != daemon) && is_alone(&place));
    writer.write(5);
    come_back(&place, &mut keepers);
    writer.write(5);
    writer.finish().succeeds();
    assert_eq!(Writer::found(&place), 18);
}

#[test]
fn where_pages_must_not_tear_it_waits_and_fails_as_under_protection() {
    let mut keepers = [Keeper::start(&[]), Keeper::start(&[])];
    let place = kept_by(&keepers);
    // A data directory, as far as it matters.
    ["ddl_recovery.log", "ibdata1"].iter().for_each(|name| fs::write(place.file(name), "").expect("made"));
    let write = "dd if=/dev/urandom of=ibdata1 bs=4096 count=3 conv=notrunc oflag=dsync status=none";
    let script = format!("{write} && touch written && read line && {write}");
    let run = ["run", "--pool", place.pool(), "--preset", "mariadb", "--policy", "atomic", "--data", "."];
    let mut run = place.command(&[&run[..], &["--", "sh", "-c", &script]].concat());
    let mut run = run.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("seawall starts");
    wait_for("the first pages", || place.file("written").exists());
    keepers.iter_mut().for_each(Keeper::kill);
    writeln!(run.stdin.as_mut().expect("piped"), "go on").expect("told");
    let log = place.status()["log"].as_str().expect("a path").to_owned();
    let said: Said = run.wait_with_output().expect("it ends").into();
    said.says(&["Input/output error"]);
    let log = fs::read_to_string(log).expect("the daemon's log");
    assert!(log.contains("cannot go on alone") && log.contains("policy atomic"), "{log}");
    assert_eq!(mark(&place), None);
}

/// The volume is the same; the keepers' copies are older than what is on it.
// Holds: admin/KEEPERS#while-a-host-is-alone
#[test]
fn a_takeover_replays_nothing_over_a_host_that_had_gone_on_alone() {
    let Some(s) = Scene::in_mode(2, "availability") else { return };
    let mut writer = s.writer(&s.a, "a");
    writer.write(5);
    s.on.iter().for_each(common::hosts::Host::unplug);
    writer.write(2);
    let alone = || s.a.status(&s.pool("a"))["kept"]["alone_s"].is_number();
    wait_for("it to go on alone", alone);
    writer.write(20);
    s.a.unplug();
    s.a.forget();
    let newer = vec![0x77; 27 * 4096];
    fs::write(s.place.file("x-wal"), &newer).expect("written");
    s.on.iter().for_each(common::hosts::Host::plug);
    let seen = s.takeover(&s.b, "b", &["--dry-run", "--json"]).json();
    assert_eq!(seen["found"]["directories"][0]["trouble"], serde_json::Value::Null, "{seen}");
    let done = s.takeover(&s.b, "b", &["--json"]).json();
    let dropped = done["takeover"]["recovery"]["dropped"][0].as_str().expect("a file");
    assert!(dropped.contains("went on without keepers"), "{done}");
    assert_eq!(fs::read(s.place.file("x-wal")).expect("the file"), newer);
    // And it goes on from there.
    fs::remove_file(s.place.file("x-wal")).expect("the former host's");
    let mut other = s.writer(&s.b, "b");
    other.write(5);
    other.finish().succeeds();
    assert_eq!(Writer::found(&s.place), 5);
}

// Holds: admin/KEEPERS#while-a-host-is-alone
#[test]
fn a_host_that_is_alone_stops_when_it_learns_that_another_one_has_the_log() {
    let Some(s) = Scene::in_mode(2, "availability") else { return };
    let mut writer = s.writer(&s.a, "a");
    writer.write(5);
    s.a.unplug();
    writer.write(2);
    wait_for("it to go on alone", || s.a.status(&s.pool("a"))["kept"]["alone_s"].is_number());
    s.takeover(&s.b, "b", &[]).succeeds();
    s.a.plug();
    wait_for("it to learn of that", || s.a.status(&s.pool("a"))["kept"]["taken_by"]["host"] == "db-b");
    wait_for("it to stop", || s.a.status(&s.pool("a"))["files"].to_string().contains("a sync failed"));
    gets_an_error(writer).says(&["Input/output error"]);
}
