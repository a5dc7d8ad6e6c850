//! A block cache whose blocks lie on a disk: warm after a restart and after kills, cold when nobody can know; a disk that
//! fails; a budget that is used up; what is no place for one.

use std::fs;

use serde_json::{Value, json};

use crate::common::disk::LoopDevice;
use crate::common::front::Front;
use crate::common::scene::Scene;
use crate::common::{Place, wait_for};

const BLOCKS: usize = 60;

const CACHE: [&str; 2] = ["--cache", "64M"];

/// A cache on a disk, and one file.
fn scene(options: &[&str]) -> Scene {
    Scene::with_zone_below("/var/tmp", &[("x.db", BLOCKS)], &[&CACHE[..], options].concat())
}

/// What is done with that file.
impl Scene {
    /// A front with all of the file in the cache, which has noted it.
    fn brought(&self) -> Front {
        let mut front = self.entered();
        wait_for("all blocks to be brought", || front.hits(BLOCKS) == BLOCKS);
        front
    }

    /// The same, and the file is left alone for long enough that its times would show a change.
    fn noted_on_disk(&mut self) -> Front {
        self.brought().end();
        self.restart(&CACHE);
        self.brought()
    }
}

#[test]
fn it_is_served_from_the_disk_and_says_so() {
    let scene = scene(&[]);
    let front = scene.brought();
    let status = scene.status();
    assert_eq!((&status["medium_name"], &status["size"]), (&json!("block"), &json!(64 << 20)));
    assert_eq!((&status["blocks_used"], &status["disk_errors"]), (&json!(BLOCKS), &json!(0)));
    assert_eq!(fs::metadata(scene.zone()).expect("there").len(), 64 << 20);
    assert!(fs::metadata(scene.index()).expect("there").len() < 4 << 20, "only the index is in memory");
    let said = scene.cache(&["list"]);
    assert!(said.succeeds().out.contains("on block"), "{}", said.out);
    front.end();
}

// Holds: internals/CACHE#a-cache-on-a-disk
#[test]
fn after_a_clean_stop_it_is_warm_without_anything_in_memory() {
    let mut scene = scene(&[]);
    let mut front = scene.noted_on_disk();
    assert_eq!(front.hits(BLOCKS), BLOCKS);
    front.end();
    let index = scene.index();
    scene.stop();
    assert!(!index.exists(), "as after a restart of the machine");
    scene.start(&CACHE);
    let mut front = scene.entered();
    assert_eq!(front.hits(BLOCKS), BLOCKS);
    assert!(scene.log().contains(&format!("with {BLOCKS} blocks")), "{}", scene.log());
    front.end();
}

// Holds: internals/CACHE#a-cache-on-a-disk
#[test]
fn after_a_kill_of_the_daemon_and_its_readers_it_is_warm() {
    let mut scene = scene(&[]);
    let mut front = scene.noted_on_disk();
    scene.kill();
    assert_eq!(front.hits(BLOCKS), 0, "nobody watches");
    front.kill();
    scene.start(&CACHE);
    let mut front = scene.entered();
    assert_eq!(front.hits(BLOCKS), BLOCKS);
    front.end();
}

#[test]
fn a_daemon_that_is_killed_under_readers_is_replaced_and_the_cache_is_warm() {
    let mut scene = scene(&[]);
    let mut front = scene.noted_on_disk();
    scene.kill();
    scene.start(&CACHE);
    wait_for("the file to be looked at", || front.read(0).0);
    assert_eq!(front.hits(BLOCKS), BLOCKS);
    assert!(scene.log().contains("took over the block cache; 1 files, 0 of them not found"));
    front.end();
}

/// The machine stopped in the middle: what is in memory is gone, and nothing on the disk is believed.
// Holds: internals/CACHE#a-cache-on-a-disk
#[test]
fn without_its_index_and_without_a_clean_stop_it_is_cold() {
    let mut scene = scene(&[]);
    let mut front = scene.noted_on_disk();
    scene.kill();
    front.kill();
    fs::remove_file(scene.index()).expect("removed");
    scene.start(&CACHE);
    let mut front = scene.entered();
    assert_eq!(front.hits(BLOCKS), 0);
    assert!(scene.log().contains("made anew: the machine stopped"), "{}", scene.log());
    front.end();
}

/// The saved index is of before the kill: a block that was written since is not in it as it was.
#[test]
fn what_was_saved_before_is_not_believed_once_it_was_in_use_again() {
    let mut scene = scene(&[]);
    let mut front = scene.noted_on_disk();
    assert_eq!(front.ask("write 7 9"), "done");
    scene.kill();
    front.kill();
    scene.start(&CACHE);
    let mut front = scene.entered();
    assert_eq!(front.read(7).1, 9);
    front.end();
}

// Holds: internals/CACHE#a-cache-on-a-disk
#[test]
fn a_disk_that_fails_switches_it_off_everywhere_and_no_read_fails() {
    let mut scene = scene(&[]);
    let mut front = scene.brought();
    let store = fs::File::options().write(true).open(scene.zone()).expect("open");
    store.set_len(4096).expect("cut off");
    // Blocks brought there make it long again: then bytes are wrong, where they were missing.
    for block in 0..BLOCKS {
        assert_eq!(front.read(block), (false, 1));
    }
    let status = scene.status();
    let count = |what: &str| status[what].as_u64().expect("a number");
    assert!(count("disk_errors") > 0 && count("disk_errors").max(count("failures")) == 8, "{status}");
    assert!(status["off"].is_string(), "{status}");
    assert_eq!(front.hits(BLOCKS), 0);
    front.end();
    scene.restart(&CACHE);
    assert_eq!(scene.status()["off"], Value::Null, "it is made anew");
}

/// An hour's share may be written at once: of a mebibyte a day that is five blocks.
// Holds: internals/CACHE#a-cache-on-a-disk
#[test]
fn no_more_is_written_than_the_budget_allows() {
    let mut scene = scene(&["--cache-write-budget", "1M"]);
    let mut front = scene.entered();
    wait_for("the budget to be used up", || {
        front.hits(BLOCKS);
        scene.status()["over_budget"].as_u64() > Some(0)
    });
    let brought = front.hits(BLOCKS);
    assert!((1..=6).contains(&brought), "{brought} blocks");
    let status = scene.status();
    assert_eq!((&status["write_budget"], &status["admitted"]), (&json!(1 << 20), &json!(brought)));
    let said = scene.seawall(&["status"]);
    assert!(said.out.contains("1 MiB a day"), "{}", said.out);
    // Another daemon does not begin with another hour's share.
    front.end();
    scene.restart(&["--cache", "64M", "--cache-write-budget", "1M"]);
    let mut front = scene.entered();
    (0..3).for_each(|_| _ = front.hits(BLOCKS));
    assert!(scene.status()["admitted"].as_u64() <= Some(brought as u64 + 1));
    front.end();
}

#[test]
fn what_is_prewarmed_is_on_the_disk() {
    let scene = scene(&[]);
    let prewarm = ["prewarm", "x.db", "--json"];
    assert_eq!(scene.cache(&prewarm).json()["admitted"], json!(BLOCKS));
    assert_eq!(scene.cache(&prewarm).json()["present"], json!(BLOCKS));
    let mut front = scene.entered();
    assert_eq!(front.hits(BLOCKS), BLOCKS);
    front.end();
}

#[test]
fn another_file_is_left_alone_and_memory_has_no_budget() {
    let place = Place::new();
    let mine = place.file("mine");
    // Zeros are somebody's too.
    fs::write(&mine, vec![0; 2 << 20]).expect("written");
    let refused = |options: &[&str], words: &[&str]| {
        let daemon = ["daemon", "--pool", place.pool(), "--cache", "64M"];
        place.seawall(&[&daemon, options].concat()).fails(1, words);
    };
    refused(&["--cache-path", mine.to_str().expect("ASCII")], &["mine is not a block cache", "left alone"]);
    assert_eq!(fs::read(&mine).expect("there"), vec![0; 2 << 20]);
    refused(&["--cache-write-budget", "1G"], &["--cache-write-budget"]);
}

/// A whole device, by a loop of a file.
// Holds: internals/CACHE#a-cache-on-a-disk
#[test]
fn a_device_is_a_cache_if_nothing_is_on_it() {
    let Some(device) = LoopDevice::new(65 << 20) else { return };
    let path = device.path();
    let cache = ["--cache", "64M", "--cache-path", path];
    let mut scene = Scene::with(&[("x.db", BLOCKS)], &cache);
    for found in [0, BLOCKS] {
        let mut front = scene.entered();
        assert_eq!(front.hits(BLOCKS), found);
        wait_for("all blocks to be brought", || front.hits(BLOCKS) == BLOCKS);
        front.end();
        scene.restart(&cache);
    }
    scene.stop();
    fs::write(path, vec![7; 4096]).expect("written");
    scene.seawall(&[&["daemon"], &cache[..]].concat()).fails(1, &["is not a block cache"]);
}
