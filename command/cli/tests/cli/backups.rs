//! Backups by the database's own rules, made without Seawall beside a server that runs with it: they start without it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::postgres::Postgres;
use crate::common::{Said, wait_for};

/// A server with a thousand rows, whose log has records and whose guard is up.
fn server() -> Option<Postgres> {
    let server = Postgres::start()?;
    sql(&server, "create table t as select generate_series(1, 1000) i");
    wait_for("the guard", || server.data().join("backup_label").exists());
    Some(server)
}

fn sql(server: &Postgres, sql: &str) {
    Said::from(server.psql().args(["-c", sql]).output().expect("psql")).succeeds();
}

/// No name in the backup is Seawall's, and a bare server finds every row.
fn starts_bare(server: &Postgres, backup: &Path) {
    let names = |dir: &Path| fs::read_dir(dir).expect("a directory").flatten().map(|entry| entry.file_name());
    let ours: Vec<_> = names(backup).filter(|name| name.to_string_lossy().contains("seawall")).collect();
    assert!(ours.is_empty(), "{ours:?}");
    let _ = fs::remove_file(backup.join("postmaster.pid"));
    fs::set_permissions(backup, PermissionsExt::from_mode(0o700)).expect("closed");
    assert_eq!(server.bare(backup, "select count(*) from t"), "1000");
}

fn backup_of(server: &Postgres) -> PathBuf {
    server.dir.path().join("backup")
}

// Holds: internals/FAILURE_MODEL#where-a-guard-can-be-met
#[test]
fn pg_basebackup() {
    let Some(server) = server() else { return };
    let mut backup = server.command(&server.bin.join("pg_basebackup"));
    backup.args(["-U", "postgres", "-c", "fast", "-X", "stream", "-h"]).arg(server.dir.path());
    backup.arg("-D").arg(backup_of(&server));
    Said::from(backup.output().expect("pg_basebackup")).succeeds();
    starts_bare(&server, &backup_of(&server));
    server.stop();
    assert!(!server.data().join("backup_label").exists());
}

/// As pgBackRest, Barman and WAL-G do it: the files one by one between two calls, and the label that the second one gives.
// Holds: internals/FAILURE_MODEL#where-a-guard-can-be-met
#[test]
fn the_files_under_pg_backup_start() {
    let Some(server) = server() else { return };
    let (data, backup) = (server.data().display().to_string(), backup_of(&server).display().to_string());
    let script = format!(
        "select pg_backup_start('test', true);
         \\! cp -a {data} {backup}
         \\! rm -rf {backup}/pg_wal/* {backup}/backup_label
         \\o {backup}/backup_label
         select labelfile from pg_backup_stop(false);
         \\o
         \\! cp -a {data}/pg_wal/0* {backup}/pg_wal/
        "
    );
    let mut psql = server.psql();
    let mut psql = psql.args(["-v", "ON_ERROR_STOP=1"]).stdin(Stdio::piped()).spawn().expect("psql");
    psql.stdin.take().expect("piped").write_all(script.as_bytes()).expect("it reads");
    assert!(psql.wait().expect("psql ends").success());
    starts_bare(&server, &backup_of(&server));
}
