//! `seawall guard`: what stands in a directory, whether it is the pool's own or a copy, and lowering it.

use crate::common;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Place, Said, Writer, kill_everything, names, wait_for};
use seawall_daemon::guard::{Among, Claim};

/// A copy of the place's directory, as a backup restores it.
fn copy(place: &Place) -> tempfile::TempDir {
    let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let from = format!("{}/.", place.data.path().display());
    let copied = Command::new("cp").arg("-a").arg(from).arg(dir.path()).status().expect("cp");
    assert!(copied.success());
    dir
}

fn guard(place: &Place, words: &[&str], dir: &Path) -> Said {
    place.seawall(&[&["guard"], words, &[dir.to_str().expect("a path")]].concat())
}

// Holds: R4
#[test]
fn a_copy_is_told_from_the_original_and_lowered_while_the_pool_lives_and_keeps_its_records() {
    let place = Place::new();
    let mut writer = Writer::start_less_privileged(&place);
    writer.write(20);
    let copied = copy(&place);
    let own = guard(&place, &[], place.data.path());
    assert!(own.succeeds().out.contains("runs with Seawall"), "{}", own.out);
    guard(&place, &["--lower"], place.data.path())
        .fails(1, &["nothing was changed", "seawall stop", "seawall freeze"]);

    let said = guard(&place, &[], copied.path());
    assert!(said.succeeds().out.contains("a copy"), "{}", said.out);
    assert!(said.out.contains(&format!("seawall guard --lower {}", copied.path().display())), "{}", said.out);
    // Whoever opens a managed file takes it out of the log for a moment, cp too: until it is back nothing is live.
    wait_for("the file to be in the log again", || {
        writer.write(1);
        place.status()["files"][0]["live"] == true
    });
    let said = guard(&place, &["--lower"], copied.path());
    assert!(said.succeeds().out.contains("records now that the copy cannot have, of "), "{}", said.out);
    assert_eq!(names(copied.path()), ["x-wal"]);

    // The original is as it was.
    kill_everything(&place, writer);
    let json = guard(&place, &["--json"], place.data.path()).json();
    assert_eq!(json["guards"][0]["standing"], "original", "{json}");
    guard(&place, &["--lower"], place.data.path())
        .fails(1, &["still exists", "may hold commits", "seawall recover"]);
    assert!(place.guard().exists());
    place.seawall(&["recover", "--replay", "--pool", place.pool()]).succeeds();
    let said = guard(&place, &[], place.data.path());
    assert!(said.succeeds().out.contains("has no guard"), "{}", said.out);
}

// Holds: R4
#[test]
fn a_guard_that_a_closed_log_left_and_one_of_a_lost_pool_are_lowered() {
    let place = Place::new();
    let mut writer = Writer::start_less_privileged(&place);
    writer.write(3);
    let copied = copy(&place);
    writer.finish().succeeds();
    // The guard's end never reached the disk.
    fs::rename(copied.path().join("x-journal"), place.file("x-journal")).expect("the guard as it was");
    let json = guard(&place, &["--lower", "--json"], place.data.path()).json();
    assert_eq!(json["guards"][0]["standing"], "original, nothing live", "{json}");
    assert!(!place.guard().exists());

    let lost = copied.path().join("lost");
    fs::create_dir(&lost).expect("made");
    let claim = Claim { uuid: 1, pool: "/nowhere/lost.pool".into() };
    let preset = seawall_wire::shm::Preset::Sqlite;
    seawall_daemon::guard::raise(preset, &lost.join("a.db-journal"), &claim, Among::Nobody).expect("raised");
    let said = guard(&place, &["--lower"], &lost);
    assert!(
        said.succeeds().out.contains("Lost: the commits that only the pool /nowhere/lost.pool held"),
        "{}",
        said.out
    );
    assert_eq!(names(&lost), [""; 0]);
}

/// The text of a guard, as any version writes it.
fn text() -> String {
    Claim { uuid: 1, pool: "/nowhere/lost.pool".into() }.text("It stands in.")
}

/// Its name, what lies there, and what is left when it is mended.
type Left = (&'static str, fn(&Path), &'static [&'static str]);

/// What older versions, crashes and hands leave behind, above the database's directory too.
// Holds: R4
#[test]
fn everything_that_was_left_behind_is_mended() {
    let states: [Left; 6] = [
        (
            "a guard of PG_VERSION",
            |d| {
                w(d, "PG_VERSION", &text());
                w(d, "PG_VERSION.seawall", "15\n")
            },
            &["PG_VERSION"],
        ),
        ("the true file without its text", |d| w(d, "PG_VERSION.seawall", "15\n"), &["PG_VERSION"]),
        (
            "a prepared text",
            |d| {
                w(d, "PG_VERSION", "15\n");
                w(d, "PG_VERSION.seawall", &text())
            },
            &["PG_VERSION"],
        ),
        (
            "a temporary text",
            |d| {
                w(d, "PG_VERSION", "15\n");
                w(d, "PG_VERSION.seawall.tmp", "half")
            },
            &["PG_VERSION"],
        ),
        ("SQLite's, half cleared", |d| fs::create_dir(d.join("a.db-journal.seawall")).expect("made"), &[]),
        (
            "a text for CURRENT",
            |d| {
                w(d, "CURRENT", &text());
                w(d, "CURRENT.seawall", "MANIFEST\n")
            },
            &["CURRENT"],
        ),
    ];
    let place = Place::bare();
    for (name, leave, left) in states {
        let above = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let dir = above.path().join("15/main");
        fs::create_dir_all(&dir).expect("made");
        leave(&dir);
        let said = guard(&place, &[], above.path());
        assert!(said.succeeds().out.contains("seawall guard --lower"), "{name}: {}", said.out);
        guard(&place, &["--lower"], above.path()).succeeds();
        assert_eq!(names(&dir), left, "{name}");
        assert!(guard(&place, &[], above.path()).succeeds().out.contains("has no guard"), "{name}");
    }
}

fn w(dir: &Path, name: &str, text: &str) {
    fs::write(dir.join(name), text).expect("written");
}

/// A directory whose database an older version guarded is mended by whatever recovers its pool.
// Holds: R4
#[test]
fn recover_and_run_lower_the_guard_of_an_older_version() {
    let place = Place::new();
    let cluster = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let path = |name: &str| -> PathBuf { cluster.path().join(name) };
    fs::create_dir(path("pg_wal")).expect("a directory");
    w(cluster.path(), "PG_VERSION", "15\n");
    let run = || {
        let words = ["run", "--pool", place.pool(), "--preset", "postgres", "--data"];
        let cluster = cluster.path().to_str().expect("a path");
        place.seawall(&[&words[..], &[cluster, "--", "true"]].concat())
    };
    run().succeeds();
    let uuid = place.seawall(&["inspect", place.pool(), "--json"]).json()["uuid"].clone();
    let uuid = u128::from_str_radix(uuid.as_str().expect("a number"), 16).expect("hexadecimal");
    let claim = Claim { uuid, pool: place.pool.clone() };
    for mend in [&(|| run()) as &dyn Fn() -> Said, &|| place.seawall(&["recover", "--pool", place.pool()])] {
        fs::rename(path("PG_VERSION"), path("PG_VERSION.seawall")).expect("aside");
        w(cluster.path(), "PG_VERSION", &claim.text("The PG_VERSION of this database is kept aside."));
        mend().succeeds();
        assert_eq!(names(cluster.path()), ["PG_VERSION", "pg_wal"]);
        assert_eq!(fs::read_to_string(path("PG_VERSION")).expect("the file"), "15\n");
    }
}

/// A file system in a file, mounted; `None` where this user may not.
struct Mounted {
    at: tempfile::TempDir,
}

impl Mounted {
    fn new(image: &Path) -> Option<Self> {
        let at = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let mounted = Command::new("mount").args(["-o", "loop"]).arg(image).arg(at.path()).output().ok()?;
        mounted.status.success().then_some(Self { at })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.at.path()).status();
    }
}

/// A snapshot of the whole file system has the same identities, of the file system too.
// Holds: R4
#[test]
fn the_same_directory_in_a_snapshot_of_its_file_system_is_a_copy() {
    if !common::is_root() || !common::has("mkfs.ext4") {
        return;
    }
    let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let [image, snapshot] = ["image", "snapshot"].map(|name| dir.path().join(name));
    fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("an image");
    assert!(Command::new("mkfs.ext4").arg("-q").arg(&image).status().expect("mkfs").success());
    let Some(disk) = Mounted::new(&image) else { return };
    let mut place = Place::new();
    place.data = tempfile::tempdir_in(disk.at.path()).expect("a directory");
    let mut writer = Writer::start(&place);
    writer.write(5);
    assert!(Command::new("sync").status().expect("sync").success());
    fs::copy(&image, &snapshot).expect("copied");
    let copy = Mounted::new(&snapshot).expect("mounted");
    let copied = copy.at.path().join(place.data.path().file_name().expect("a name"));
    kill_everything(&place, writer);
    let standing = |dir: &Path| guard(&place, &["--json"], dir).json()["guards"][0]["standing"].clone();
    assert_eq!((standing(&copied), standing(place.data.path())), ("copy".into(), "original".into()));
    guard(&place, &["--lower"], &copied).succeeds();
    assert_eq!(names(&copied), ["x-wal"]);
    assert!(place.guard().exists());
    place.seawall(&["recover", "--pool", place.pool()]).succeeds();
}
