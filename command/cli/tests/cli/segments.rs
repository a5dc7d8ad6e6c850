//! Segments of PostgreSQL's log under the policy `tail`: no commit waits for the first fsync of one, nor until the zeros
//! of a new one are on the disk.

use std::fs;

use crate::common::{cluster, wait_for};
use serde_json::json;

/// As PostgreSQL makes one, and writes the first commit into it.
const MAKES: &str = "use IO::Handle; use Fcntl; my $f; \
    sysopen($f, 'pg_wal/xlogtemp.7', O_RDWR | O_CREAT | O_EXCL) or die; \
    for (1 .. 16) { syswrite($f, \"\\0\" x 1048576) == 1048576 or die; } \
    $f->sync or die; close $f; rename('pg_wal/xlogtemp.7', 'pg_wal/000000010000000000000002') or die; \
    sysopen($f, 'pg_wal/000000010000000000000002', O_RDWR) or die; $f->sync or die; \
    syswrite($f, 'a commit') == 8 or die; $f->sync or die; \
    sysopen(my $o, 'pg_wal/00000002.history', O_RDWR | O_CREAT) or die; syswrite($o, 'x') == 1 or die; \
    $o->sync or die;";

#[test]
fn a_new_one_is_in_the_log_from_its_first_write_and_other_files_from_their_first_fsync() {
    let Some(place) = cluster::place() else { return };
    let run = cluster::start(&place, "tail", MAKES);
    let status = place.status();
    let segment = cluster::file(&status, "/000000010000000000000002").expect("the segment");
    let of_segment =
        ["tracked", "writes", "untracked_writes", "absorbed", "real_syncs"].map(|key| &segment[key]);
    assert_eq!(
        json!(of_segment),
        json!([true, 17, 0, 2, 2]),
        "when it was empty, and for its name: {segment}"
    );
    let other = cluster::file(&status, "/00000002.history").expect("the other file");
    let of_other = ["tracked", "untracked_writes", "real_syncs"].map(|key| &other[key]);
    assert_eq!(json!(of_other), json!([true, 1, 1]), "{other}");
    cluster::finish(run);
    let content = fs::read(place.file("pg_wal/000000010000000000000002")).expect("read");
    assert!(content.len() == 16 << 20 && content.starts_with(b"a commit\0"));
}

/// Writes into the second of four, and syncs nothing.
const WRITES: &str = "use Fcntl; sysopen(my $f, 'pg_wal/000000010000000000000002', O_RDWR) or die; \
    syswrite($f, 'a commit') == 8 or die;";

#[test]
fn the_others_of_its_directory_are_in_the_log_before_they_are_written() {
    let Some(place) = cluster::place() else { return };
    let others = ["000000010000000000000001", "000000010000000000000003", "000000010000000000000004"];
    for name in others.into_iter().chain(["000000010000000000000002", "00000002.history"]) {
        fs::write(place.file("pg_wal").join(name), [7; 65536]).expect("written");
    }
    let run = cluster::start(&place, "tail", WRITES);
    let in_log = || {
        let status = place.status();
        let files = status["files"].as_array().expect("files").iter();
        let tracked = files.filter(|file| file["tracked"] == true && file["writes"] == 0);
        let mut names: Vec<_> =
            tracked.filter_map(|f| f["path"].as_str()?.rsplit('/').next().map(str::to_owned)).collect();
        names.sort();
        names
    };
    wait_for("the others", || in_log() == others);
    let status = place.status();
    let files = status["files"].as_array().expect("files");
    assert_eq!(files.len(), 4, "no other kind of file: {files:#?}");
    cluster::finish(run);
}
