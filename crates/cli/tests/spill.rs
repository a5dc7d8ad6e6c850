//! A small pool with a spill area, by the command: made, used, shown, refused, recovered.

mod common;

use std::fs;

use common::{Place, Said, Writer, kill_everything, wait_for};

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
    let mut content = Vec::new();
    wait_for("a burst that the disk is too slow for", || {
        content = burst(&place);
        place.status()["spill"]["spilled_bytes"].as_u64() > Some(0)
    });
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

#[test]
fn an_area_that_is_gone_and_was_empty_is_told_of_and_does_without() {
    let place = with_area();
    fs::remove_file(area_of(&place)).expect("removed");
    let mut writer = Writer::start(&place);
    writer.write(3);
    wait_for("the trouble to be told", || place.status()["spill"]["trouble"].is_string());
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
    place.seawall(&taken).fails(1, &["cannot be made", "Name a file that does not exist yet"]);
    assert_eq!(fs::read(&area).expect("kept"), b"somebody's");
    assert!(!fs::exists(place.pool()).expect("asked") && !fs::exists(&block).expect("asked"));
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
    place.seawall(&run).fails(125, &["without a spill area", "only a new pool is given one"]);
    assert!(!fs::exists(&area).expect("asked"));
}
