//! A command may write other files than were registered: Seawall registers those if it can, else it reports them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Stdio;

use crate::common::mariadb::Mariadb;
use crate::common::postgres::Postgres;
use crate::common::{Place, SEAWALL, Said, has, is_root};

/// Nobody's, on every distribution.
const NOBODY: u32 = 65534;
const AS_NOBODY: [&str; 7] = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"];

fn writes(file: &str) -> [String; 7] {
    let of = format!("of={file}");
    ["dd", "if=/dev/zero", &of, "bs=4096", "count=2", "conv=fsync", "status=none"].map(Into::into)
}

fn run_with(place: &Place, command: &[impl AsRef<str>]) -> Said {
    place.run(&command.iter().map(AsRef::as_ref).collect::<Vec<_>>())
}

/// A directory that belongs to nobody, in a place that everybody may enter.
fn nobodys() -> Place {
    let place = Place::bare();
    for dir in [place.data.path(), place.pool.parent().expect("a directory")] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).expect("opened");
    }
    chown(place.data.path(), Some(NOBODY), Some(NOBODY)).expect("given away");
    place
}

#[test]
fn a_link_to_a_database_manages_the_directory_that_it_leads_to() {
    if !has("sqlite3") {
        return;
    }
    let place = Place::new();
    fs::create_dir(place.file("real")).expect("made");
    symlink("real/a.db", place.file("link.db")).expect("a link");
    let look = format!(".shell {SEAWALL} status --json --pool {} > status.json", place.pool());
    let write =
        "pragma journal_mode=wal; create table t(x); insert into t values(1); insert into t values(2);";
    place.seawall(&["run", "--pool", place.pool(), "--", "sqlite3", "link.db", write, &look]).succeeds();
    let status: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(place.file("status.json")).expect("looked")).expect("JSON");
    assert_eq!(status["roots"][0]["path"], place.file("real").to_str().expect("a path"));
    let files = status["files"].as_array().expect("files");
    assert!(files.iter().any(|f| f["absorbed"].as_u64() > Some(0)), "{status}");
}

#[test]
fn a_file_that_no_preset_knows_is_named_if_nothing_else_was_logged() {
    let place = Place::new();
    let said = run_with(&place, &writes("own.dat"));
    said.succeeds().says(&["nothing of this run went through the log", "own.dat", "--preset", "sqlite"]);
    let both = format!("{}; {}", writes("own.dat").join(" "), writes("x-wal").join(" "));
    let said = run_with(&place, &["sh", "-c", &both]);
    assert!(!said.succeeds().err.contains("nothing of this run"), "{}", said.err);
    let said = run_with(&place, &["true"]);
    assert!(!said.succeeds().err.contains("WARNING"), "it synced nothing: {}", said.err);
}

#[test]
fn a_database_elsewhere_is_named_also_beside_one_that_is_logged() {
    let place = Place::new();
    let other = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let elsewhere = writes(other.path().join("y-wal").to_str().expect("a path")).join(" ");
    let both = format!("{}; {elsewhere}", writes("x-wal").join(" "));
    for script in [&elsewhere, &both] {
        let said = run_with(&place, &["sh", "-c", script]);
        said.succeeds().says(&["WARNING", "y-wal", "outside the managed directories", "--data"]);
        assert_eq!(said.err.matches("WARNING").count(), 1, "once: {}", said.err);
    }
    // While it runs.
    let slow = format!("{elsewhere}; sleep 0.7; exit 3");
    run_with(&place, &["sh", "-c", &slow]).fails(3, &["y-wal", "is synced WITHOUT Seawall"]);
}

/// The database's program changes its user after it was started by root: log and daemon are that user's.
// Holds: admin/RUN#the-user
#[test]
fn a_program_that_is_started_by_root_and_changes_its_user_is_served_as_that_one() {
    if !is_root() || !has("setpriv") || !has("sqlite3") {
        return;
    }
    let place = nobodys();
    let database = place.file("a.db");
    let look = format!(".shell {SEAWALL} status --json --pool {} > status.json", place.pool());
    let write =
        "pragma journal_mode=wal; create table t(x); insert into t values(1); insert into t values(2);";
    let database = database.to_str().expect("a path");
    let run = ["run", "--emulated", "--size", "16M", "--pool", place.pool(), "--"];
    let said = place.seawall(&[&run[..], &AS_NOBODY, &["sqlite3", database, write, &look]].concat());
    said.succeeds();
    assert!(!said.err.contains("WARNING") && !said.err.contains("not active"), "{}", said.err);
    assert_eq!(fs::metadata(&place.pool).expect("a pool").uid(), NOBODY);
    assert_eq!(fs::metadata(database).expect("a database").uid(), NOBODY);
    let status: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(place.file("status.json")).expect("looked")).expect("JSON");
    assert!(status["files"].as_array().is_some_and(|files| !files.is_empty()), "{status}");
    assert!(
        status["log"].as_str().is_some_and(|log| log.contains("65534")),
        "the daemon is nobody's: {status}"
    );
}

/// As `mkdir` by root and `chown postgres` leave it: its guard cannot be of that group, and everything went to the disk.
#[test]
fn a_directory_of_a_group_that_its_owner_is_not_in_is_guarded_all_the_same() {
    let Some(postgres) = Postgres::start().filter(|_| is_root()) else { return };
    postgres.stop();
    chown(postgres.data(), None, Some(0)).expect("root's group");
    let mut run = postgres.seawall(&["run", "--pool"]);
    run.arg(postgres.pool()).arg("--").arg(postgres.bin.join("postgres")).arg("--single").arg("-D");
    run.arg(postgres.data()).arg("postgres").stdin(Stdio::piped());
    let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    run.stdin.take().expect("piped").write_all(b"create table t(x int)\n").expect("written");
    let said: Said = run.wait_with_output().expect("it ends").into();
    assert!(!said.succeeds().err.contains("WARNING"), "{}", said.err);
}

#[test]
fn a_file_that_cannot_be_managed_is_named_with_the_reason_if_nothing_else_was_logged() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    fs::write(place.file("x-wal"), "").expect("written");
    fs::set_permissions(place.file("x-wal"), fs::Permissions::from_mode(0o400)).expect("read-only");
    let said = run_with(&place, &writes("x-wal"));
    said.succeeds().says(&[
        "nothing of this run went through the log",
        "x-wal",
        "could not be managed",
        "read-only",
    ]);
}

#[test]
fn a_process_that_became_another_user_unseen_says_that_it_goes_without() {
    if !is_root() || !has("setpriv") {
        return;
    }
    let place = Place::new();
    fs::set_permissions(place.data.path(), fs::Permissions::from_mode(0o777)).expect("opened");
    let hidden = format!("{} {}", AS_NOBODY.join(" "), writes("x-wal").join(" "));
    let said = place.run_command(&["sh", "-c", "$HIDDEN"]).env("HIDDEN", hidden).output().expect("runs");
    Said::from(said).succeeds().says(&["not active in this process", "another user", "--user NAME"]);
}

/// As official images do: `--user` in the command, root before it.
#[test]
fn mariadb_with_a_user_of_its_own_is_logged() {
    let Some(server) = Mariadb::installed().filter(|_| has("mariadbd-safe")) else { return };
    let (place, sql) = (&server.place, |what: &str| server.sql(what));
    for program in ["mariadbd", "mariadbd-safe"] {
        let mut run =
            place.command(&["run", "--emulated", "--size", "16M", "--pool", place.pool(), "--", program]);
        let run = server.serve(run.args(server.options()).arg("--user=mysql").stderr(Stdio::null()));
        assert!(sql("create database if not exists d"));
        assert!(sql("create or replace table d.t (x int) engine=innodb; insert into d.t values (1)"));
        let status = place.status();
        let logged = status["files"].as_array().expect("files").iter().any(|file| {
            let path = Path::new(file["path"].as_str().unwrap_or_default());
            path.starts_with(place.file("data")) && file["absorbed"].as_u64() > Some(0)
        });
        assert!(logged, "{program}: {status}");
        assert!(sql("shutdown"));
        assert!(run.wait().success(), "{program}");
    }
}
