//! The block cache's life: found again, made anew, taken over; strangers; what goes wrong.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use seawall_daemon::cache::CacheOptions;
use seawall_daemon::control::Control;
use seawall_daemon::{Options, serve};

use crate::common::front::{BLOCK, Front};
use crate::common::scene::Scene;
use crate::common::served::add_root;
use crate::common::{Place, is_root, wait_for};

const BLOCKS: usize = 200;

const CACHE: [&str; 2] = ["--cache", "64M"];

/// A cache, and one file.
fn scene() -> Scene {
    Scene::with(&[("x.db", BLOCKS)], &CACHE)
}

/// What is done with that file.
impl Scene {
    fn db(&self) -> PathBuf {
        self.file("x.db")
    }

    /// A front with the file entered and all of it in the cache.
    fn warm(&self) -> Front {
        let mut front = self.front_of(&self.db());
        wait_for("all blocks to be admitted", || front.hits(BLOCKS) == BLOCKS);
        front
    }

    /// Stopped cleanly and started again, with the file noted: a daemon that is killed now is found out by nobody.
    fn noted(&mut self) {
        self.warm().end();
        self.settle();
        self.restart(&CACHE);
    }

    /// Until the file's times are old enough to show another change.
    fn settle(&self) {
        let stat = fs::metadata(self.db()).expect("stat");
        let changed = stat.ctime() as i128 * 1_000_000_000 + i128::from(stat.ctime_nsec());
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as i128;
        wait_for("times to settle", || now() - changed > 60_000_000);
    }
}

#[test]
fn after_a_clean_stop_the_cache_is_warm() {
    let mut scene = scene();
    scene.noted();
    let mut front = scene.front_of(&scene.db());
    let hits = front.hits(BLOCKS);
    assert!(hits * 10 >= BLOCKS * 9, "{hits} of {BLOCKS}");
    let status = scene.status();
    assert_eq!(status["files"], 1);
    assert_eq!(status["off"], serde_json::Value::Null);
    assert!(scene.log().contains("found the block cache"));
}

#[test]
fn a_file_that_changed_meanwhile_is_cold() {
    let mut scene = scene();
    scene.noted();
    scene.stop();
    let file = fs::File::options().write(true).open(scene.db()).expect("open");
    file.write_all_at(&[2; BLOCK], 0).expect("written");
    drop(file);
    scene.start(&CACHE);
    let mut front = scene.front_of(&scene.db());
    assert_eq!(front.read(0), (false, 2));
    assert_eq!(front.hits(BLOCKS), 1, "what was read just now");
}

/// Readers go on; nothing is served while no daemon watches, and everything when the next one has looked.
#[test]
fn a_daemon_that_is_killed_under_readers_is_replaced_and_the_cache_is_warm() {
    let mut scene = scene();
    scene.noted();
    let mut front = scene.front_of(&scene.db());
    assert_eq!(front.hits(BLOCKS), BLOCKS);
    scene.kill();
    assert_eq!(front.hits(BLOCKS), 0, "nobody watches");
    scene.start(&CACHE);
    wait_for("the file to be looked at", || front.read(0).0);
    assert_eq!(front.hits(BLOCKS), BLOCKS);
    assert!(scene.log().contains("took over the block cache; 1 files, 0 of them not found"));
}

/// A stranger wrote while nobody watched.
// Holds: internals/CACHE#writers-without-the-preload
#[test]
fn what_was_written_between_two_daemons_is_seen() {
    let mut scene = scene();
    scene.noted();
    let mut front = scene.front_of(&scene.db());
    assert_eq!(front.read(7), (true, 1));
    scene.kill();
    let file = fs::File::options().write(true).open(scene.db()).expect("open");
    file.write_all_at(&[2; BLOCK], 7 * BLOCK as u64).expect("written");
    drop(file);
    assert_eq!(front.read(7), (false, 2));
    scene.start(&CACHE);
    assert_eq!(front.read(7).1, 2);
    wait_for("the file to be served again", || front.read(7) == (true, 2));
}

/// A cache that is taken over by a daemon without one, or with another one, is served to nobody any more.
#[test]
fn a_daemon_without_the_cache_of_those_who_live_serves_none() {
    let mut scene = scene();
    let mut front = scene.warm();
    scene.kill();
    fs::rename(scene.zone(), scene.place.ram("elsewhere")).expect("moved");
    scene.start(&CACHE);
    assert_eq!(scene.status(), serde_json::Value::Null);
    assert!(scene.log().contains("was not found: nothing is cached until they have ended"));
    // Nor when the next one would find it: a process that came in between writes without a word.
    scene.kill();
    fs::rename(scene.place.ram("elsewhere"), scene.zone()).expect("moved back");
    scene.start(&CACHE);
    assert_eq!(scene.status(), serde_json::Value::Null);
    assert_eq!(front.hits(BLOCKS), 0);
    front.end();
}

#[test]
fn a_write_that_was_killed_is_tidied_up() {
    let scene = scene();
    let mut front = scene.warm();
    assert_eq!(front.ask("half-write 3 9"), "done");
    let mut other = scene.front_of(&scene.db());
    assert_eq!(other.read(3), (false, 9));
    assert_eq!(other.read(3), (false, 9), "a write is under way");
    front.kill();
    wait_for("the mark of the dead to go", || other.read(3) == (true, 9));
}

// Holds: internals/CACHE#writers-without-the-preload
#[test]
fn a_strangers_write_is_seen_at_once() {
    if !is_root() {
        eprintln!("skipped: only for root do opens wait");
        return;
    }
    let scene = scene();
    let mut front = scene.warm();
    for byte in 2..6 {
        assert!(front.read(5).0);
        // Opened, written and closed in a moment.
        let from = scene.file("new");
        fs::write(&from, [byte; BLOCK]).expect("written");
        let dd = Command::new("dd")
            .args(["bs=8192", "seek=5", "conv=notrunc", "status=none"])
            .args([format!("if={}", from.display()), format!("of={}", scene.db().display())])
            .status();
        assert!(dd.expect("dd").success());
        assert_eq!(front.read(5), (false, byte));
        wait_for("the file to be served again", || front.read(5) == (true, byte));
    }
    assert!(scene.log().contains("which runs without Seawall: the file is not cached meanwhile"));
}

/// A backup reads the file: its blocks are not lost.
// Holds: internals/CACHE#writers-without-the-preload
#[test]
fn a_stranger_who_only_reads_costs_a_moment() {
    if !is_root() {
        eprintln!("skipped: only for root do opens wait");
        return;
    }
    let scene = scene();
    let mut front = scene.warm();
    scene.settle();
    let read = Command::new("cat").arg(scene.db()).stdout(Stdio::null()).status();
    assert!(read.expect("cat").success());
    assert_eq!(front.hits(1), 0, "it might have been for writing");
    wait_for("the file to be served again", || front.read(0).0);
    assert_eq!(front.hits(BLOCKS), BLOCKS);
}

#[test]
fn a_file_that_a_stranger_writes_is_not_entered() {
    let scene = scene();
    let script = format!("exec 9>>{}; echo; read x", scene.db().display());
    let mut stranger = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut ready = [0];
    std::io::Read::read_exact(stranger.stdout.as_mut().expect("piped"), &mut ready).expect("ready");
    let mut front = scene.front();
    assert_eq!(front.enter(&scene.db()), "Refused");
    drop(stranger.stdin.take());
    stranger.wait().expect("it ends");
    assert_eq!(front.enter(&scene.db()), "Ok");
}

#[test]
fn what_is_not_a_databases_file_is_not_entered() {
    let scene = scene();
    let mut front = scene.front();
    let outside = tempfile::NamedTempFile::new_in("/var/tmp").expect("a file");
    assert_eq!(front.enter(outside.path()), "Bypass");
    let log = scene.file("x.db-wal");
    fs::write(&log, "x").expect("written");
    assert_eq!(front.enter(&log), "Bypass");
    let small = scene.file("small.db");
    fs::write(&small, "x").expect("written");
    assert_eq!(front.enter(&small), "Ok", "it may grow");
}

/// Of PostgreSQL the log manages `pg_wal` alone, and what is read lies beside it.
#[test]
fn a_file_beside_the_directory_that_the_log_manages_is_entered() {
    let scene = scene();
    let data = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let data = data.path().canonicalize().expect("it exists");
    for name in ["pg_wal", "base"] {
        fs::create_dir(data.join(name)).expect("made");
    }
    let file = data.join("base/1");
    fs::write(&file, vec![1; BLOCK]).expect("written");
    let mut front = scene.front();
    assert_eq!(front.enter(&file), "Bypass");
    add_root(&scene.place, "postgres", &data.join("pg_wal"), &data);
    assert_eq!(front.enter(&file), "Ok");
}

#[test]
fn a_zone_of_another_size_or_a_damaged_one_is_made_anew() {
    let mut scene = scene();
    scene.noted();
    scene.restart(&["--cache", "80M"]);
    assert!(scene.log().contains("made anew: it has another size"));
    assert_eq!(scene.status()["size"], 80 << 20);
    scene.stop();
    let zone = fs::File::options().read(true).write(true).open(scene.zone()).expect("open");
    // Of a random number: any value may have been there.
    let mut byte = [0];
    zone.read_exact_at(&mut byte, 20).expect("read");
    zone.write_all_at(&[!byte[0]], 20).expect("damaged");
    scene.start(&["--cache", "80M"]);
    assert!(scene.log().contains("made anew: the zone is damaged"));
    scene.warm().end();
}

#[test]
fn a_cache_that_cannot_be_is_refused_before_anything_starts() {
    let place = Place::new();
    let run = |arguments: &[&str]| {
        let mut all = vec!["run", "--pool", place.pool(), "--preset", "sqlite", "--data", "."];
        all.extend(arguments);
        all.extend(["--", "true"]);
        place.seawall(&all)
    };
    run(&["--cache", "1M"]).fails(125, &["64M to 16T", "--cache 1G"]);
    run(&["--cache", "64M", "--cache-block", "5K"]).fails(2, &["4K, 8K, 16K"]);
    run(&["--cache", "much"]).fails(2, &["not a size"]);
    run(&["--cache-path", "/dev/shm/x"]).fails(2, &["--cache <SIZE>"]);
    run(&["--cache", "8T"]).fails(125, &["no room", "--cache-path"]);
    run(&["--cache", "64M", "--cache-path", "/nowhere/x"])
        .fails(125, &["/nowhere/x", "directory must exist"]);
    run(&["--cache", "64M", "--cache-path", "/dev/shm"]).fails(125, &["/dev/shm", "name a file in it"]);
    let disk = place.file("zone").display().to_string();
    run(&["--cache", "64M", "--cache-write-budget", "1G"]).fails(125, &["do not wear out"]);
    run(&["--cache", "64M", "--cache-path", &disk]).succeeds();
    let mine = place.ram("mine");
    fs::write(&mine, "a text of mine, and not a short one").expect("written");
    run(&["--cache", "64M", "--cache-path", &mine]).fails(125, &["not a block cache", "left alone"]);
    assert_eq!(fs::read_to_string(&mine).expect("still there"), "a text of mine, and not a short one");
    run(&["--cache", "64M"]).succeeds();
    let left: Vec<_> = fs::read_dir(place.pool.parent().expect("a directory")).expect("readable").collect();
    assert_eq!(left.len(), 3, "the pool, its cache, and mine: {left:?}");
}

#[test]
fn a_log_on_a_disk_has_no_cache_beside_it() {
    let mut place = Place::bare();
    place.pool = place.file("log");
    let log = place.pool().to_owned();
    let said = place.seawall(&[
        "run", "--block", &log, "--cache", "64M", "--preset", "sqlite", "--data", ".", "--", "true",
    ]);
    said.fails(125, &["a log on a block device", "--cache-path"]);
    assert_eq!(place.in_memory(), Vec::<PathBuf>::new(), "a start that was refused leaves nothing in memory");
    let store = place.file("store").display().to_string();
    let cache = ["run", "--block", &log, "--cache", "64M", "--cache-path", &store];
    place.seawall(&[&cache[..], &["--preset", "sqlite", "--data", ".", "--", "true"]].concat()).succeeds();
}

#[test]
fn status_has_a_shape() {
    let scene = scene();
    let front = scene.warm();
    let status = scene.status();
    for key in ["path", "medium_name", "block_bytes", "blocks", "files_max", "off", "advisory"] {
        assert!(status.get(key).is_some(), "{key}: {status}");
    }
    assert_eq!(status["medium_name"], "emulated");
    assert_eq!((&status["size"], &status["files"]), (&(64 << 20).into(), &1.into()));
    assert_eq!((&status["blocks_used"], &status["admitted"]), (&BLOCKS.into(), &BLOCKS.into()));
    assert_eq!((&status["files_not_served"], &status["failures"]), (&0.into(), &0.into()));
    assert_eq!((&status["hits"], &status["misses"]), (&0.into(), &0.into()), "fronts count them");
    let said = scene.seawall(&["status"]);
    assert!(said.out.contains("block cache") && said.out.contains("1 of 64 files entered"), "{}", said.out);
    front.end();
}

const SERVICE: &str = "SEAWALL_TEST_SERVICE";

/// A service's daemon, which comes up whatever becomes of its cache.
#[test]
fn service_of_the_tests() {
    let Some(pool) = std::env::var_os(SERVICE) else { return };
    let nowhere = Some("/proc/zone-of-the-tests".into());
    let cache = CacheOptions { path: nowhere, is_needed: false, ..CacheOptions::of_size(64 << 20) };
    let options = Options {
        pool: pool.into(),
        keep: true,
        boot: false,
        journal: false,
        cache: Some(cache),
        watchdog: None,
    };
    serve(&options, || ()).expect("served");
}

#[test]
fn a_service_comes_up_without_its_cache_and_says_why() {
    let place = Place::new();
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "cache::service_of_the_tests", "--quiet"]).env(SERVICE, &place.pool);
    let mut service = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("a process");
    wait_for("the daemon", || matches!(Control::connect(&place.pool), Ok(Some(_))));
    let (status, said) = (place.status(), place.seawall(&["status", "--pool", place.pool()]));
    place.seawall(&["stop", "--pool", place.pool()]).succeeds();
    assert!(service.wait().expect("it ended").success());
    assert!(status["cache"].is_null(), "{status}");
    let why = status["without_cache"].as_str().expect("a reason");
    assert!(why.contains("/proc/zone-of-the-tests") && why.contains("cannot find a place"), "{why}");
    assert!(said.out.contains("NO BLOCK CACHE"), "{}", said.out);
}
