//! Reads through the block cache, beside every way to change a file and under kills; through both fronts.

use crate::common;
use std::process::Stdio;

use crate::common::mounts::Mounts;
use crate::common::{Place, Said, cc, has};

const ZONE: &str = "1G";

/// Runs a command on the data directory as SQLite's, with a cache, then `seawall status` beside it.
fn run(place: &Place, command: &str) -> Said {
    run_with(place, &[], command)
}

/// The same with other options.
fn run_with(place: &Place, options: &[&str], command: &str) -> Said {
    let script = format!("{command} && {} status --json --pool {}", common::SEAWALL, place.pool());
    let run = ["run", "--cache", ZONE, "--pool", place.pool(), "--preset", "sqlite", "--data", ".", "--"];
    let run: Vec<_> = run[..3].iter().chain(options).chain(&run[3..]).copied().collect();
    let mut run = place.command(&run);
    run.args(["sh", "-c", &script]).stdin(Stdio::null()).output().expect("seawall starts").into()
}

/// Hits of the cache and reads of the disk, as status shows them at the end of the output.
fn reads(said: &Said) -> (u64, u64) {
    let status = said.out.split_once("right\n").expect("it went well").1;
    let status: serde_json::Value = serde_json::from_str(status).expect("JSON");
    let events = status["events"].as_array().expect("events");
    let count = |name: &str| {
        let event = events.iter().find(|event| event["name"] == name);
        event.and_then(|event| event["count"].as_u64()).unwrap_or(0)
    };
    (count("db flash cache single block physical read"), count("db file sequential read"))
}

/// Plays a scene of `programs/cached.c`: hits and reads of the disk.
fn play(scene: &str) -> (u64, u64) {
    play_at(&Place::new(), "", scene)
}

/// The same behind other commands.
fn play_at(place: &Place, before: &str, scene: &str) -> (u64, u64) {
    play_with(place, &[], before, scene)
}

/// The same with a cache on the disk.
fn play_on_disk(scene: &str) -> (u64, u64) {
    let place = Place::new();
    let store = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let store = store.path().join("store");
    let reads = play_with(&place, &["--cache-path", store.to_str().expect("ASCII")], "", scene);
    assert!(
        !place.index_of(&store).exists(),
        "the index is saved when the daemon ends, and stays nowhere else"
    );
    reads
}

fn play_with(place: &Place, options: &[&str], before: &str, scene: &str) -> (u64, u64) {
    let source = include_str!("programs/cached.c");
    let Some(program) = cc(place, "cached", source, &["-O1"]) else {
        panic!("no C compiler: make deps installs one");
    };
    let (name, arguments) = scene.split_once(' ').unwrap_or((scene, ""));
    let data = place.data.path().display();
    let command = format!("{before} {} {name} {data} {arguments}", program.display());
    let said = run_with(place, options, &command);
    said.succeeds();
    reads(&said)
}

// Holds: internals/CACHE#where-it-stands
#[test]
fn a_hit_asks_neither_the_page_cache_nor_the_disk_and_errors_are_the_kernels() {
    let (hits, reads) = play("hits");
    assert!(hits >= 32 && reads >= 16, "{hits} hits, {reads} reads");
}

// Holds: internals/CACHE#tested
#[test]
fn every_way_to_change_a_file_is_seen_by_everybody_who_reads_it() {
    let (hits, _) = play("ways");
    assert!(hits >= 1000, "{hits} hits");
}

/// Where a file is read and where it is changed, if not in its own directory: through a mount of that.
const READ: &str = "READ_AT=at";
const CHANGED: &str = "CHANGE_AT=at";

/// Plays a scene on a directory that is mounted too: hits and reads of the disk. `None` where nothing can be mounted.
fn play_mounted(preset: &str, through: &str, scene: &str) -> Option<(u64, u64)> {
    let m = Mounts::new()?;
    m.mount_cached(preset, ZONE);
    play_on(&m, preset, through, scene)
}

/// The same with a cache on a disk.
fn play_mounted_on_disk(through: &str, scene: &str) -> Option<(u64, u64)> {
    let m = Mounts::new()?;
    let store = tempfile::tempdir_in("/var/tmp").expect("a directory");
    m.mount_stored("sqlite", ZONE, store.path().join("store").to_str().expect("ASCII"));
    play_on(&m, "sqlite", through, scene)
}

fn play_on(m: &Mounts, preset: &str, through: &str, scene: &str) -> Option<(u64, u64)> {
    let program = cc(&m.place, "cached", include_str!("programs/cached.c"), &["-O1"])?;
    let (name, arguments) = scene.split_once(' ').unwrap_or((scene, ""));
    let script = format!(
        "{through} {} {name} backing {arguments} && {} status --json --pool {}",
        program.display(),
        common::SEAWALL,
        m.place.pool()
    );
    let run = ["run", "--pool", m.place.pool(), "--preset", preset, "--data", "backing", "--"];
    let mut run = m.place.command(&run);
    let said: Said = run.args(["sh", "-c", &script]).stdin(Stdio::null()).output().expect("it starts").into();
    m.umount().succeeds();
    said.succeeds();
    Some(reads(&said))
}

// Holds: internals/CACHE#through-a-mount
#[test]
fn every_change_through_a_mount_is_seen_by_preloaded_readers() {
    let Some((hits, _)) = play_mounted("sqlite", CHANGED, "ways") else { return };
    assert!(hits >= 1000, "{hits} hits");
}

// Holds: internals/CACHE#through-a-mount
#[test]
fn every_change_by_preloaded_writers_is_seen_through_a_mount() {
    let Some((hits, _)) = play_mounted("sqlite", READ, "ways") else { return };
    assert!(hits >= 1000, "{hits} hits");
}

// Holds: internals/CACHE#through-a-mount
#[test]
fn every_change_through_a_mount_is_seen_through_the_mount() {
    let Some((hits, _)) = play_mounted("sqlite", &format!("{READ} {CHANGED}"), "ways") else { return };
    assert!(hits >= 1000, "{hits} hits");
}

/// Files that no preset logs, which the kernel would read and write past the mount if there were no cache.
// Holds: internals/CACHE#through-a-mount
#[test]
fn files_that_nobody_logs_do_not_go_past_the_mount() {
    let Some((hits, _)) = play_mounted("redis", CHANGED, "ways") else { return };
    assert!(hits >= 1000, "{hits} hits");
}

// Holds: internals/CACHE#through-a-mount
#[test]
fn readers_and_writers_at_different_fronts_that_are_killed_leave_no_old_block() {
    for through in [CHANGED, READ, &format!("{READ} {CHANGED}")] {
        let Some((hits, reads)) = play_mounted("sqlite", through, "killed 10 300") else { return };
        assert!(hits >= 300 && reads >= 30, "{through} shows nothing: {hits} hits, {reads} reads");
    }
}

// Holds: internals/CACHE#through-a-mount
#[test]
fn a_cache_on_a_disk_is_read_through_a_mount_and_every_change_is_seen() {
    for through in [READ, &format!("{READ} {CHANGED}")] {
        let Some((hits, _)) = play_mounted_on_disk(through, "ways") else { return };
        assert!(hits >= 1000, "{hits} hits");
    }
}

// Holds: internals/CACHE#through-a-mount
#[test]
fn readers_through_a_mount_that_are_killed_leave_no_old_block_on_the_caches_disk() {
    let Some((hits, reads)) = play_mounted_on_disk(READ, "killed 10 300") else { return };
    assert!(hits >= 100 && reads >= 30, "it shows nothing: {hits} hits, {reads} reads");
}

// Holds: internals/CACHE#tested
#[test]
fn a_file_is_not_entered_while_somebody_is_in_the_middle_of_a_write() {
    play("slow");
}

// Holds: internals/CACHE#a-cache-on-a-disk
#[test]
fn a_cache_on_a_disk_is_read_past_the_page_cache_and_behind_it() {
    let (hits, _) = play_on_disk("disk");
    assert!(hits >= 32, "{hits} hits");
}

// Holds: internals/CACHE#tested
#[test]
fn every_way_to_change_a_file_is_seen_by_everybody_who_reads_it_from_the_caches_disk() {
    let (hits, _) = play_on_disk("ways");
    assert!(hits >= 1000, "{hits} hits");
}

// Holds: internals/CACHE#tested
#[test]
fn processes_that_are_killed_leave_no_old_block_on_the_caches_disk() {
    let (hits, reads) = play_on_disk("killed 30 300");
    assert!(hits >= 100 && reads >= 100, "it shows nothing: {hits} hits, {reads} reads");
}

/// Of a stream only its beginning, 4 MiB, is offered to the cache; in another order the same reads are no stream.
// Holds: internals/CACHE#what-the-preload-does
#[test]
fn a_stream_of_adjacent_reads_passes_by() {
    const BLOCKS: u64 = 1024;
    assert_eq!(play("stream up up"), (BLOCKS / 2, BLOCKS * 3 / 2));
    assert_eq!(play("stream down down"), (BLOCKS, BLOCKS));
}

/// A file with the policy keep is kept even if it is read through.
#[test]
fn a_stream_of_a_file_that_is_kept_enters() {
    let place = Place::new();
    let keep = format!("{} cache keep . --pool {} --json > said", common::SEAWALL, place.pool());
    assert_eq!(play_at(&place, &format!("{keep} &&"), "stream up up"), (1024, 1024));
}

// Holds: internals/CACHE#tested
#[test]
fn processes_that_are_killed_leave_no_old_block_to_read() {
    let (hits, reads) = play("killed 30 300");
    assert!(hits >= 1000 && reads >= 100, "it shows nothing: {hits} hits, {reads} reads");
}

/// Reads of whole blocks of the cache's size come from it, and the database finds nothing wrong.
#[test]
fn sqlite_reads_through_it_and_its_own_check_is_content() {
    if !has("sqlite3") {
        return;
    }
    let place = Place::new();
    let script = r#"
        set -e
        out_of_memory() { sync x.db; dd if=x.db iflag=nocache count=0 status=none; }
        sqlite3 x.db "pragma page_size = 8192; create table t (a integer primary key, b, c);
            with recursive n(i) as (select 1 union all select i + 1 from n where i < 30000)
            insert into t select i, hex(randomblob(40)), 0 from n; create index x on t (b);"
        for round in 1 2 3 4; do
            out_of_memory
            sqlite3 x.db "pragma cache_size = 20; pragma integrity_check; update t set c = c + 1 where a % 7 = 0;" > said
            test "$(cat said)" = ok
            out_of_memory
            test "$(sqlite3 x.db 'pragma cache_size = 20; select count(distinct b), sum(c) from t')" = "30000|$((4285 * round))"
        done
        sqlite3 x.db 'delete from t where a % 3 = 0; vacuum; pragma integrity_check' > said
        test "$(cat said)" = ok
        echo right"#;
    std::fs::write(place.file("script"), script).expect("written");
    let said = run(&place, "sh ./script");
    said.succeeds();
    let (hits, reads) = reads(&said);
    assert!(hits >= 1000 && reads >= 100, "it shows nothing: {hits} hits, {reads} reads");
}
