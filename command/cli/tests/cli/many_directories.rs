//! A pool has sixteen places for directories: those that are gone give theirs up.

use crate::common;
use std::fs;

use crate::common::Place;

/// More than there are places.
const MANY: usize = 20;

/// Runs a program that writes to a log below `name`.
fn run(place: &Place, name: &str) -> common::Said {
    let (dir, log) = (place.file(name), place.file(name).join("x-wal"));
    fs::create_dir(&dir).expect("a directory");
    let (dir, log) = (dir.display().to_string(), format!("of={}", log.display()));
    place.seawall(&[
        "run",
        "--pool",
        place.pool(),
        "--preset",
        "sqlite",
        "--data",
        &dir,
        "--",
        "dd",
        "if=/dev/zero",
        &log,
        "bs=4096",
        "count=2",
        "oflag=dsync",
        "status=none",
    ])
}

#[test]
fn directories_that_are_gone_make_room() {
    let place = Place::new();
    for _ in 0..MANY {
        run(&place, "one").succeeds();
        fs::remove_dir_all(place.file("one")).expect("removed");
    }
}

#[test]
fn directories_that_are_there_stay_registered() {
    let place = Place::new();
    let refused = (0..MANY).map(|i| run(&place, &i.to_string())).find(|said| said.code != Some(0));
    refused.expect("a full table").fails(125, &["16 directories", "use another pool"]);
}
