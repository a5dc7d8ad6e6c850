//! `seawall doctor` on this machine: its exit codes, and that what it says is true.

use std::path::Path;
use std::process::{Command, Output};

fn doctor(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seawall"));
    command.arg("doctor").args(arguments).output().expect("it runs")
}

fn json(path: &Path) -> serde_json::Value {
    let said = doctor(&["--json", &path.display().to_string()]);
    serde_json::from_slice(&said.stdout).unwrap_or_else(|e| panic!("{e}: {said:?}"))
}

#[test]
fn what_fails_is_no_finding() {
    for wrong in
        [&["--no-such-option"][..], &["/no/such/path"], &["/tmp", "/tmp"], &["--json", "--html", "x"]]
    {
        let said = doctor(wrong);
        assert_eq!(said.status.code(), Some(3), "{said:?}");
        assert!(said.stdout.is_empty() && !said.stderr.is_empty(), "{said:?}");
    }
    assert_eq!(doctor(&["--help"]).status.code(), Some(0));
    let elsewhere = Command::new(env!("CARGO_BIN_EXE_seawall")).args(["status", "--no-such-option"]).output();
    assert_eq!(
        elsewhere.expect("it runs").status.code(),
        Some(2),
        "other commands keep their code for wrong usage"
    );
}

#[test]
fn memory_is_called_memory() {
    let said = doctor(&["/dev/shm"]);
    assert_eq!(said.status.code(), Some(2), "{said:?}");
    let found = json(Path::new("/dev/shm"));
    assert_eq!((found["version"].as_u64(), found["verdict"].as_str()), (Some(1), Some("durability")));
    let ids: Vec<_> =
        found["findings"].as_array().expect("findings").iter().map(|f| f["id"].as_str()).collect();
    assert!(ids.contains(&Some("data-in-ram")) || ids.contains(&Some("tmpfs-ignores-its-source")), "{found}");
}

#[test]
fn a_database_is_known_by_its_files_and_its_settings_are_read() {
    let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("written");
    for made in ["global", "pg_wal"] {
        std::fs::create_dir(dir.path().join(made)).expect("made");
    }
    write("PG_VERSION", "15\n");
    write("postgresql.conf", "fsync = off # for the test\n");
    let found = json(dir.path());
    assert_eq!(found["database"], "PostgreSQL");
    assert_eq!(found["findings"][0]["id"], "fsync-off");
    let roles: Vec<_> =
        found["places"].as_array().expect("places").iter().map(|p| p["role"].as_str()).collect();
    assert_eq!(roles, [Some("data"), Some("log")]);
    let page = dir.path().join("page.html");
    let said = doctor(&["--html", &page.display().to_string(), &dir.path().display().to_string()]);
    assert_eq!(said.status.code(), Some(2), "{said:?}");
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("ALTER SYSTEM SET fsync = on") && page.contains("</html>"));
}

#[test]
fn nothing_is_changed() {
    let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
    std::fs::write(dir.path().join("file"), vec![0; 8192]).expect("written");
    let state = || std::fs::metadata(dir.path()).and_then(|m| m.modified()).expect("its time");
    let before = state();
    json(dir.path());
    assert_eq!(state(), before, "no file came or went");
    assert_eq!(std::fs::read_dir(dir.path()).expect("listed").count(), 1);
}

/// 1 would be a finding on speed.
#[test]
fn what_cannot_be_printed_is_no_finding() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
    let said = Command::new(env!("CARGO_BIN_EXE_seawall")).args(["doctor", "--json"]).stdout(full).output();
    assert_eq!(said.expect("it runs").status.code(), Some(3));
}
