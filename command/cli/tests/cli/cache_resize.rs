//! A block cache that gets another size while processes read and write through it: in memory and on a disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::front::Front;
use crate::common::scene::Scene;
use crate::common::{Place, SEAWALL, Said, wait_for};

/// About one for each set of a cache of 64 MiB: with seven places all of them have room, with three nearly all.
const BLOCKS: usize = 500;

/// One file, and a cache of this size and largest size, on a disk or in memory.
fn scene(is_on_disk: bool, size: &str, max: &str) -> Scene {
    let dir = if is_on_disk { "/var/tmp" } else { "/dev/shm" };
    Scene::with_zone_below(dir, &[("x.db", BLOCKS)], &sizes(size, max))
}

fn sizes<'a>(size: &'a str, max: &'a str) -> [&'a str; 4] {
    ["--cache", size, "--cache-max", max]
}

/// What is done with that file.
impl Scene {
    fn resize(&self, size: &str) -> Said {
        self.cache(&["resize", size, "--json"])
    }

    /// MiB that are taken where the blocks lie.
    fn room(&self) -> u64 {
        fs::metadata(self.zone()).expect("there").blocks() >> 11
    }
}

/// Between two rounds of a reader: without it they would leave two processors nothing for the daemon they wait for.
const BREATH: Duration = Duration::from_millis(2);

/// Readers, one of which writes too, go on while the size changes up and down; what they read is always right.
// Holds: internals/CACHE#resizing
#[test]
fn readers_go_on_while_it_grows_and_shrinks() {
    for is_on_disk in [false, true] {
        let scene = scene(is_on_disk, "64M", "64M");
        let mut readers: Vec<Front> = (0..2).map(|_| scene.entered()).collect();
        let mut writer = scene.entered();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (nth, reader) in readers.iter_mut().enumerate() {
                let done = &done;
                scope.spawn(move || {
                    let mut rounds = 0;
                    while !done.load(SeqCst) || rounds == 0 {
                        for block in (nth..90).step_by(2) {
                            let (_, byte) = reader.read(block);
                            assert!(byte == 1 || block < 20, "block {block} holds {byte}");
                        }
                        rounds += 1;
                        std::thread::sleep(BREATH);
                    }
                });
            }
            let _ends = SetAtEnd(&done);
            for (round, size) in ["5M", "64M", "33M", "9M", "64M"].iter().enumerate() {
                scene.resize(size).succeeds();
                for block in 0..20 {
                    let byte = 2 + round as u8;
                    assert_eq!(writer.ask(&format!("write {block} {byte}")), "done");
                    assert_eq!(writer.read(block).1, byte, "after {size}");
                }
            }
        });
        let status = scene.status();
        assert_eq!(
            (&status["failures"], &status["disk_errors"], &status["off"]),
            (&json!(0), &json!(0), &Value::Null)
        );
        wait_for("it to fill again", || writer.hits(90) == 90);
        readers.into_iter().for_each(Front::end);
        writer.end();
    }
}

/// Lets the readers end, whatever becomes of the test.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Growing keeps everything; shrinking what has room, and gives the rest back.
// Holds: internals/CACHE#resizing
#[test]
fn entries_survive_as_far_as_they_fit_and_room_is_taken_and_given_back() {
    for is_on_disk in [false, true] {
        let scene = scene(is_on_disk, "32M", "64M");
        let mut front = scene.entered();
        assert!((31..=33).contains(&scene.room()), "{}", scene.room());
        wait_for("all blocks to enter", || front.hits(BLOCKS) == BLOCKS);
        let grown = scene.resize("64M").json();
        assert_eq!((&grown["size"], &grown["blocks_used"]), (&json!(64 << 20), &json!(BLOCKS)));
        assert!((63..=65).contains(&scene.room()), "{}", scene.room());
        assert_eq!(front.hits(BLOCKS), BLOCKS);
        let shrunk = scene.resize("16M").json();
        let size = shrunk["size"].as_u64().expect("a number");
        assert!((16 << 20..17 << 20).contains(&size), "a quarter is one: {shrunk}");
        let kept = shrunk["blocks_used"].as_u64().expect("a number");
        assert!(kept > 400 && kept <= shrunk["blocks"].as_u64().expect("a number"), "{shrunk}");
        assert!((15..=17).contains(&scene.room()), "{}", scene.room());
        let hits = front.hits(BLOCKS);
        assert!(hits >= 400, "{hits}");
        let status = scene.status();
        assert_eq!((&status["size"], &status["size_max"]), (&json!(size), &json!(64 << 20)));
        assert_eq!(status["failures"], json!(0));
        front.end();
    }
}

/// Sets are sixteenths of the largest size; of a set's places three quarters are kept, rounded down.
#[test]
fn no_more_is_kept_or_promised_than_a_size_has_room_for() {
    let scene = scene(false, "64M", "64M");
    let list = || scene.cache(&["list", "--json"]).json();
    let number = |value: &Value| value.as_u64().expect("a number");
    scene.cache(&["keep", "x.db"]).succeeds();
    let mut front = scene.entered();
    let sets = number(&list()["blocks"]) / 16;
    for size in ["64M", "5M", "9M", "21M", "64M"] {
        scene.resize(size).succeeds();
        front.hits(BLOCKS);
        let listed = list();
        let (ways, kept) = (number(&listed["blocks"]) / sets, number(&listed["policies"][0]["kept"]));
        assert_eq!(number(&listed["kept_max"]), sets * (ways * 3 / 4), "{size}: {listed}");
        assert!(kept <= sets * (ways * 3 / 4), "{size}: {listed}");
        assert!(kept == BLOCKS as u64 || ways < 16, "{size}: {listed}");
    }
    front.end();
}

#[test]
fn a_start_with_another_size_is_warm_and_holds() {
    for is_on_disk in [false, true] {
        let mut scene = scene(is_on_disk, "64M", "64M");
        let mut front = scene.entered();
        wait_for("blocks to enter", || front.hits(300) == 300);
        front.end();
        // Until the file's times are old enough to show another change.
        scene.restart(&sizes("64M", "64M"));
        let mut front = scene.entered();
        wait_for("blocks to enter", || front.hits(300) == 300);
        front.end();
        scene.restart(&sizes("20M", "64M"));
        let mut front = scene.entered();
        let size = scene.status()["size"].as_u64().expect("a number");
        assert!((20 << 20..21 << 20).contains(&size), "{size}");
        let hits = front.hits(300);
        assert!(hits >= 200, "{hits}");
        front.end();
    }
}

#[test]
fn a_size_that_cannot_be_is_refused_and_nothing_changes() {
    let scene = scene(false, "64M", "64M");
    scene.resize("65M").fails(1, &["64 MiB at most", "--cache-max"]);
    scene.resize("1M").fails(1, &["less than 4 MiB"]);
    assert_eq!(scene.status()["size"], json!(64 << 20));
}

#[test]
fn a_run_says_what_cache_there_is_if_it_is_another_one() {
    let place = Place::new();
    let run = |command: &str| {
        let run = ["run", "--pool", place.pool(), "--preset", "sqlite", "--data", "."];
        let cache = ["--cache", "64M", "--cache-max", "256M", "--", "sh", "-c", command];
        place.seawall(&[&run[..], &cache].concat())
    };
    let first = run("true");
    assert!(!first.succeeds().err.contains("already"), "it is as large as was asked for: {}", first.err);
    let again = format!("{SEAWALL} run --pool {} --preset sqlite --data . --cache 64M -- true", place.pool());
    let resize = format!("{SEAWALL} cache resize 128M --pool {}", place.pool());
    run(&format!("{resize} && {again}")).succeeds().says(&["already has a block cache of 128.2 MiB"]);
}
