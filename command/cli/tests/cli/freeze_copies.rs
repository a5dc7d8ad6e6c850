//! A copy that is taken of a frozen database opens without Seawall, with all that was acknowledged.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::JoinHandle;

use crate::common::postgres::Postgres;
use crate::common::{Place, Said, child, has, server, wait_for};

/// A client that commits all the time, over one connection, and counts what was acknowledged.
struct Committing {
    run: Child,
    acknowledged: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Committing {
    /// `statement` for a number, which it returns when it is committed. `first` makes the table.
    fn start(mut run: Command, first: &str, statement: fn(u64) -> String) -> Self {
        run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut run = run.spawn().expect("it starts");
        let (mut to, from) = (run.stdin.take().expect("piped"), run.stdout.take().expect("piped"));
        writeln!(to, "{first}").expect("it lives");
        let acknowledged = Arc::new(AtomicU64::new(0));
        let ends = Arc::new(AtomicBool::new(false));
        let (count, end) = (Arc::clone(&acknowledged), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            let mut answers = BufReader::new(from).lines();
            let mut next = 1;
            while !end.load(SeqCst) {
                writeln!(to, "{}", statement(next)).expect("it lives");
                let answer =
                    answers.by_ref().find(|line| line.as_ref().is_ok_and(|line| *line == next.to_string()));
                answer.expect("an answer").expect("text");
                count.store(next, SeqCst);
                next += 1;
            }
        });
        let committing = Self { run, acknowledged, ends, thread };
        committing.wait(20);
        committing
    }

    fn now(&self) -> u64 {
        self.acknowledged.load(SeqCst)
    }

    /// Until so many more are committed.
    fn wait(&self, more: u64) {
        let from = self.now();
        wait_for("commits", || self.now() >= from + more);
    }

    /// What it said on stderr, and how much it committed.
    fn finish(self) -> (Said, u64) {
        self.ends.store(true, SeqCst);
        self.thread.join().expect("every statement was answered");
        let committed = self.acknowledged.load(SeqCst);
        (self.run.wait_with_output().expect("ended").into(), committed)
    }
}

fn sqlite(place: &Place, mode: &str) -> Committing {
    let run = place.run_command(&["sqlite3", "x.db"]);
    let first = format!(
        "pragma journal_mode={mode}; pragma synchronous=extra; create table t(i integer primary key);"
    );
    Committing::start(run, &first, |i| format!("insert into t values({i}) returning i;"))
}

/// The answer of a bare sqlite3.
fn bare(dir: &Path, sql: &str) -> Said {
    let mut command = Command::new("sqlite3");
    command.arg(dir.join("x.db")).arg(sql).env_remove("LD_PRELOAD").output().expect("sqlite3").into()
}

/// An atomic snapshot, as far as the database can tell: it is stopped while its files are copied.
fn snapshot(pids: &[u32], from: &Path, to: &Path) -> String {
    let pids = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    format!(
        "kill -STOP {pids}; cp -a {}/. {}; copied=$?; kill -CONT {pids}; exit $copied",
        from.display(),
        to.display()
    )
}

fn sqlite_is_copied(mode: &str) {
    if !has("sqlite3") {
        return;
    }
    let place = Place::new();
    let committing = sqlite(&place, mode);
    let pid = child(committing.run.id(), "sqlite3");
    let copied = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let before = committing.now();
    let copy = snapshot(&[pid], place.data.path(), copied.path());
    place.seawall(&["freeze", "--pool", place.pool(), "--", "sh", "-c", &copy]).succeeds();
    let found = bare(copied.path(), "pragma integrity_check; select max(i) from t");
    let mut lines = found.succeeds().out.lines();
    assert_eq!(lines.next(), Some("ok"), "{mode}: {}", found.out);
    let last: u64 = lines.next().and_then(|n| n.parse().ok()).expect("a number");
    assert!(last >= before, "{mode}: {before} were acknowledged before, the copy has {last}");
    committing.wait(20);
    let journal = |dir: &Path| dir.join("x.db-journal").is_dir();
    assert!(!journal(copied.path()), "{mode}: a guard was copied");
    // In the log again.
    let logged = || {
        let status = place.status();
        let files = status["files"].as_array().expect("files").iter();
        files.filter_map(|file| file["writes"].as_u64()).sum::<u64>()
    };
    wait_for("records", || {
        let before = logged();
        committing.wait(20);
        logged() > before
    });
    assert!(journal(place.data.path()), "{mode}: behind a guard");
    let (said, committed) = committing.finish();
    assert!(!said.succeeds().err.contains("rror"), "{mode}: {}", said.err);
    let found = bare(place.data.path(), "select count(*) from t");
    assert_eq!(found.succeeds().out.trim(), committed.to_string(), "{mode}");
}

// Holds: R5
#[test]
fn a_copy_of_a_frozen_sqlite_in_mode_wal_opens_bare_with_all_that_was_acknowledged() {
    sqlite_is_copied("wal");
}

// Holds: R5
#[test]
fn a_copy_of_a_frozen_sqlite_in_mode_delete_opens_bare_with_all_that_was_acknowledged() {
    sqlite_is_copied("delete");
}

/// Its journal is made and removed while the guard that has its name comes and goes.
// Holds: P5
#[test]
fn a_sqlite_in_mode_delete_sees_nothing_of_freezes() {
    if !has("sqlite3") {
        return;
    }
    let place = Place::new();
    let committing = sqlite(&place, "delete");
    for _ in 0..40 {
        place.seawall(&["freeze", "--pool", place.pool(), "--", "true"]).succeeds();
    }
    let (said, committed) = committing.finish();
    assert!(!said.succeeds().err.contains("rror"), "{}", said.err);
    let found = bare(place.data.path(), "select count(*) from t");
    assert_eq!(found.succeeds().out.trim(), committed.to_string());
}

// Holds: R5
#[test]
fn a_copy_of_a_frozen_postgres_starts_bare_with_all_that_was_acknowledged() {
    let Some(server) = Postgres::start() else { return };
    let snapshot = |copied: &Path| snapshot(&server.pids(), &server.data(), copied);
    postgres_is_copied(&server, snapshot);
}

/// Writes wait, which makes one moment of the time that the copy takes: nobody stops the server.
#[test]
fn a_copy_of_a_frozen_postgres_without_full_pages_starts_bare_with_all_that_was_acknowledged() {
    let Some(server) = Postgres::start_with(&["--policy", "atomic"], &["-c", "full_page_writes=off"]) else {
        return;
    };
    postgres_is_copied(&server, |copied| format!("cp -a {}/. {}", server.data().display(), copied.display()));
}

fn postgres_is_copied(server: &Postgres, snapshot: impl Fn(&Path) -> String) {
    let first = "create table t(i int primary key);";
    let committing =
        Committing::start(server.psql(), first, |i| format!("insert into t values({i}) returning i;"));
    let copied = tempfile::tempdir_in(server.dir.path()).expect("a directory");
    if let Some((uid, gid)) = server::user() {
        std::os::unix::fs::chown(copied.path(), Some(uid), Some(gid)).expect("given");
    }
    let before = committing.now();
    // Its name, by which its pool is found.
    let mut freeze = server.command(&server.dir.path().join("seawall"));
    freeze.arg("freeze").arg(server.data()).args(["--pool"]).arg(server.pool());
    let copy = snapshot(copied.path());
    Said::from(freeze.args(["--", "sh", "-c", &copy]).output().expect("seawall")).succeeds();
    fs::remove_file(copied.path().join("postmaster.pid")).expect("of the running one");
    fs::set_permissions(copied.path(), PermissionsExt::from_mode(0o700)).expect("closed");
    let last: u64 = server.bare(copied.path(), "select max(i) from t").parse().expect("a number");
    assert!(last >= before, "{before} were acknowledged before, the copy has {last}");
    committing.wait(20);
    let status = || {
        Said::from(server.seawall(&["status", "--json", "--pool"]).arg(server.pool()).output().expect("it"))
    };
    wait_for("records", || {
        committing.wait(20);
        status().json()["files"].as_array().expect("files").iter().any(|file| file["live"] == true)
    });
    let (said, committed) = committing.finish();
    assert!(said.succeeds().err.is_empty(), "{}", said.err);
    server.stop();
    assert_eq!(server.bare(&server.data(), "select count(*) from t"), committed.to_string());
}
