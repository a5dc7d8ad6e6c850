//! A log that is renamed: one fsync makes the name durable, and the data stay in Seawall's log. And one whose owner is set.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::common::mounts::{Mounts, tracked};
use crate::common::{Place, cc};
use seawall_media::magic;

// Holds: L7
#[test]
fn an_fsync_after_a_rename_waits_for_the_name_alone() {
    let place = Place::new();
    let Some(file) = after(&place, "renamed", include_str!("programs/renamed.c"), "/y-wal") else { return };
    assert_one_sync_of_the_name(&place, &file);
    assert_eq!(std::fs::read(place.file("y-wal")).expect("read"), [3; 65536]);
}

#[test]
fn only_a_change_of_attributes_makes_an_fsync_real() {
    let place = Place::new();
    let Some(file) = after(&place, "owned", include_str!("programs/owned.c"), "/x-wal") else { return };
    let state = (&file["tracked"], &file["real_syncs"], &file["absorbed"]);
    assert_eq!(state, (&true.into(), &2.into(), &5.into()), "one when it was new, one after fchmod: {file}");
}

/// What `status` says of the file while the program waits for its end; `None` without a compiler.
fn after(place: &Place, name: &str, source: &str, file: &str) -> Option<serde_json::Value> {
    let program = cc(place, name, source, &[])?;
    let mut run = place.run_command(&[program.to_str().expect("a path")]);
    let mut run = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("seawall starts");
    let mut line = String::new();
    BufReader::new(run.stdout.as_mut().expect("piped")).read_line(&mut line).expect("read");
    assert_eq!(line, "done\n");
    let status = place.status();
    let named = |other: &&serde_json::Value| other["path"].as_str().is_some_and(|path| path.ends_with(file));
    let file = status["files"].as_array().expect("files").iter().find(named).expect("the file").clone();
    drop(run.stdin.take());
    assert!(run.wait().expect("the run ends").success());
    Some(file)
}

#[test]
fn on_the_mount_too() {
    let Some(m) = Mounts::new() else { return };
    m.mount();
    let file = tracked(&m.at("x-wal"));
    std::fs::rename(m.at("x-wal"), m.at("y-wal")).expect("renamed");
    (0..3).for_each(|_| file.sync_all().expect("synced"));
    assert_one_sync_of_the_name(&m.place, &m.state("y-wal"));
    drop(file);
    m.umount().succeeds();
}

/// One sync when it was new, one after the rename; only elsewhere than on ext4 and XFS that one retired the records.
fn assert_one_sync_of_the_name(place: &Place, file: &serde_json::Value) {
    assert_eq!((&file["tracked"], &file["real_syncs"]), (&true.into(), &2.into()), "{file}");
    assert_eq!(file["live"], is_named_by_directory(place.data.path()), "{file}");
    assert_eq!(file["flags"], serde_json::json!([]), "{file}");
}

fn is_named_by_directory(path: &Path) -> bool {
    magic::has_believed_directories(rustix::fs::statfs(path).expect("a file system").f_type as u64)
}
