//! Bad pools: each a clear error with what to do, nothing lost, no panic.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::process::Stdio;
use std::time::Duration;

use crate::common::{EMULATED, Place, Writer, is_root};
use seawall_media::crc32c;

/// Where the superblock keeps things; `seawall_core::format` asserts these offsets.
const VERSION_AT: usize = 8;
const HOST_AT: usize = 72;
const CHECKSUM_AT: usize = 96;
const COPIES: [u64; 2] = [0, 4096];

/// Changes bytes of both superblocks, and makes their checksums right again if asked to.
fn patch(place: &Place, at: usize, bytes: &[u8], valid: bool) {
    let file = OpenOptions::new().read(true).write(true).open(&place.pool).expect("the pool");
    for copy in COPIES {
        let mut superblock = [0; CHECKSUM_AT + 4];
        file.read_exact_at(&mut superblock, copy).expect("read");
        superblock[at..at + bytes.len()].copy_from_slice(bytes);
        if valid {
            let sum = crc32c(&superblock[..CHECKSUM_AT]);
            superblock[CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
        }
        file.write_all_at(&superblock, copy).expect("written");
    }
}

/// A power cut while the pool was made left an empty file, which every later run refused.
#[test]
fn regression_a_pool_is_whole_or_not_there() {
    let place = Place::bare();
    for pause in (0..30).map(Duration::from_millis) {
        let mut init = place.command(&["init", place.pool(), "--size", "64M", "--emulated"]);
        let mut init = init.stdout(Stdio::null()).spawn().expect("seawall starts");
        std::thread::sleep(pause);
        init.kill().expect("killed");
        init.wait().expect("reaped");
        if place.pool.exists() {
            place.seawall(&["verify", place.pool()]).succeeds();
            fs::remove_file(&place.pool).expect("removed");
        }
    }
}

// Holds: R7
#[test]
fn a_missing_pool() {
    let place = Place::bare();
    place.run(&["true"]).fails(125, &["there is no pool at", "seawall init"]);
    for command in ["status", "drain", "stop", "recover"] {
        place.seawall(&[command, "--pool", place.pool()]).fails(1, &["there is no pool at", "seawall init"]);
    }
    place.seawall(&["verify", place.pool()]).fails(1, &["there is no pool at"]);
}

// Holds: R7
#[test]
fn a_pool_that_is_too_small() {
    let place = Place::bare();
    let said = place.seawall(&["init", place.pool(), "--size", "1M", "--emulated"]);
    said.fails(1, &["too few", "16M"]);
    assert!(!place.pool.exists(), "nothing half made stays behind");
}

// Holds: R7
#[test]
fn a_pool_in_use() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(2);
    let said = place.seawall(&["init", place.pool(), "--size", "16M", "--emulated", "--force"]);
    said.fails(1, &["in use by a running daemon", "seawall stop"]);
    place.seawall(&["recover", "--pool", place.pool()]).fails(1, &["still use the log", "stop the database"]);
    place.seawall(&["stop", "--pool", place.pool()]).fails(1, &["still use the log"]);
    writer.finish().succeeds();
}

// Holds: R7
#[test]
fn a_pool_of_another_version() {
    let place = Place::new();
    patch(&place, VERSION_AT, &99u32.to_le_bytes(), true);
    for said in [place.run(&["true"]), place.seawall(&["inspect", place.pool()])] {
        said.says(&["format version 99", "recover it with the version that made it"]);
        assert_ne!(said.code, Some(0));
    }
}

// Holds: R7
#[test]
fn a_truncated_pool() {
    let place = Place::new();
    let file = OpenOptions::new().write(true).open(&place.pool).expect("the pool");
    file.set_len((16 << 20) - 4096).expect("cut");
    place.run(&["true"]).fails(125, &["bytes", "pool"]);
    file.set_len(100).expect("cut");
    place.run(&["true"]).fails(125, &["100 bytes"]);
}

#[test]
fn a_flipped_bit_in_one_superblock_is_survived_and_in_both_refused() {
    let place = Place::new();
    let file = OpenOptions::new().read(true).write(true).open(&place.pool).expect("the pool");
    // Of a random number: any value may have been there.
    let mut byte = [0];
    file.read_exact_at(&mut byte, 20).expect("read");
    let flipped = [!byte[0]];
    file.write_all_at(&flipped, 20).expect("flipped");
    place.run(&["true"]).succeeds();
    patch(&place, 20, &flipped, false);
    place.run(&["true"]).fails(125, &["superblocks", "damaged", "backup"]);
    place.seawall(&["verify", place.pool()]).fails(1, &["damaged"]);
}

#[test]
fn a_file_that_is_no_pool() {
    let place = Place::bare();
    fs::write(&place.pool, vec![b'x'; 17 << 20]).expect("written");
    place.run(&["true"]).fails(125, &["not a Seawall pool"]);
    let said = place.seawall(&["init", place.pool(), "--size", "16M", "--emulated"]);
    said.fails(1, &["already exists", "--force"]);
    assert_eq!(fs::metadata(&place.pool).expect("kept").len(), 17 << 20);
}

// Holds: R7
#[test]
fn a_pool_of_another_host() {
    let place = Place::new();
    patch(&place, HOST_AT, &[7; 16], true);
    place.run(&["true"]).fails(125, &["another host"]);
    place.seawall(&["recover", "--pool", place.pool()]).fails(1, &["another host"]);
}

#[test]
fn a_pool_of_another_user() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    std::os::unix::fs::chown(&place.pool, Some(65534), None).expect("given away");
    place.run(&["true"]).fails(125, &["belongs to nobody", "--user nobody"]);
}

#[test]
fn a_pool_without_permission() {
    let place = Place::new();
    fs::set_permissions(&place.pool, Permissions::from_mode(0o000)).expect("closed");
    if is_root() {
        return; // Root may do anything.
    }
    place.run(&["true"]).fails(125, &["cannot open", "ermission denied"]);
}

#[test]
fn memory_that_forgets_must_be_asked_for_by_name() {
    let place = Place::bare();
    let said = place.seawall(&["init", place.pool(), "--size", "16M"]);
    said.fails(1, &["would not survive power loss", "--emulated"]);
    assert!(!place.pool.exists());
    let run = ["run", "--preset", "sqlite", "--data", ".", "--pool", place.pool()];
    let said = place.seawall(&[&run[..], &["--emulated", "--size", "16M", "--", "true"]].concat());
    said.succeeds().says(&[EMULATED, "NOT a crash or power cut of this machine"]);
    assert_eq!(said.err.lines().count(), 1, "one line, nothing else: {}", said.err);
}
