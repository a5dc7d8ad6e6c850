//! `seawall freeze` and `thaw`: a copy that is taken in between opens without Seawall, and the writer sees nothing of it.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::postgres::Postgres;
use common::{Place, SEAWALL, Said, Writer, child, cluster, has, kill, server, signal, wait_for};
use serde_json::Value;

fn freeze(place: &Place, words: &[&str]) -> Said {
    place.seawall(&[&["freeze", "--pool", place.pool()], words].concat())
}

fn thaw(place: &Place) -> Said {
    place.seawall(&["thaw", "--pool", place.pool()])
}

/// The file that the writer writes, as `status` tells of it.
fn file(place: &Place) -> Value {
    place.status()["files"][0].clone()
}

fn wait_until_logged(place: &Place, writer: &mut Writer) {
    wait_for("the file to be in the log again", || {
        writer.write(1);
        file(place)["live"] == true
    });
}

// Holds: K8
#[test]
fn a_frozen_file_is_out_of_the_log_without_a_guard_and_thawed_it_is_back_behind_one() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(10);
    assert_eq!(file(&place)["live"], true);
    freeze(&place, &[]).succeeds();
    assert!(!place.guard().exists());
    writer.write(5);
    let frozen = file(&place);
    assert_eq!((&frozen["tracked"], &frozen["live"]), (&false.into(), &false.into()), "{frozen}");
    assert!(frozen["flags"].as_array().expect("flags").contains(&"frozen".into()), "{frozen}");
    let status = place.status();
    assert_eq!(status["guards"], 0);
    assert!(status["frozen"]["seconds_left"].as_u64() > Some(3500), "{}", status["frozen"]);
    assert!(place.seawall(&["status", "--pool", place.pool()]).out.contains("FROZEN"));
    freeze(&place, &[]).fails(1, &["already frozen", "seawall thaw"]);

    thaw(&place).succeeds();
    assert!(place.guard().exists(), "before the first record");
    wait_until_logged(&place, &mut writer);
    thaw(&place).fails(1, &["nothing is frozen"]);
    let said = writer.finish();
    assert_eq!(
        said.succeeds().err.lines().filter(|line| !line.contains(common::EMULATED)).count(),
        0,
        "{}",
        said.err
    );
    assert!(!place.guard().exists());
}

// Holds: K8
#[test]
fn a_freeze_ends_with_its_command_at_its_limit_and_with_its_daemon() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(3);
    let code = freeze(&place, &["--", "sh", "-c", "test ! -e x-journal && exit 7"]);
    assert_eq!(code.code, Some(7), "{}{}", code.out, code.err);
    assert!(place.guard().exists());
    wait_until_logged(&place, &mut writer);

    let ended = format!("'{}' thaw --pool '{}'", SEAWALL, place.pool());
    freeze(&place, &["--", "sh", "-c", &ended]).fails(1, &["ended before the command did", "Copy it again"]);

    freeze(&place, &["--for", "1s"]).succeeds();
    assert!(!place.guard().exists());
    wait_for("the limit", || place.status()["frozen"].is_null());
    assert!(place.guard().exists());
    thaw(&place).fails(1, &["nothing is frozen"]);

    freeze(&place, &[]).succeeds();
    writer.write(2);
    let daemon = place.daemon().expect("a daemon");
    // Whoever would start the next one is stopped.
    signal(writer.run.id().into(), "STOP");
    kill(daemon);
    writer.write(2);
    assert!(!place.guard().exists(), "nobody logs: the mark outlives the daemon");
    signal(writer.run.id().into(), "CONT");
    wait_for("another daemon", || place.daemon().is_some_and(|pid| pid != daemon));
    assert!(place.guard().exists() && place.status()["frozen"].is_null());
    wait_until_logged(&place, &mut writer);

    // One that nobody ends does not keep the guard from going with the database.
    freeze(&place, &[]).succeeds();
    thaw(&place).succeeds();
    writer.finish().succeeds();
    wait_for("the guard's end", || !place.guard().exists());
}

// Holds: K8
#[test]
fn what_is_made_meanwhile_has_no_guard_and_is_in_the_log_after_the_thaw() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(2);
    freeze(&place, &[]).succeeds();
    let mut late =
        place.run_command(&["dd", "of=y-wal", "bs=4096", "iflag=fullblock", "oflag=dsync", "status=none"]);
    let mut late = late.stdin(Stdio::piped()).spawn().expect("seawall starts");
    let mut blocks = 0;
    let mut write = || {
        blocks += 1;
        late.stdin.as_mut().expect("piped").write_all(&[1; 4096]).expect("it lives");
        wait_for("a block", || fs::metadata(place.file("y-wal")).is_ok_and(|m| m.len() >= blocks * 4096));
    };
    // More than a file is asked about that was refused for good.
    (0..40).for_each(|_| write());
    assert!(!place.file("y-journal").exists());
    assert_eq!(place.status()["files"].as_array().map(Vec::len), Some(1));
    thaw(&place).succeeds();
    write();
    write();
    assert!(place.file("y-journal").exists());
    drop(late.stdin.take());
    assert!(late.wait().expect("ended").success());
    writer.finish().succeeds();
}

#[test]
fn a_directory_finds_its_pool() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(2);
    let data = place.data.path().to_str().expect("a path");
    place.seawall(&["freeze", data, "--", "test", "!", "-e", "x-journal"]).succeeds();
    freeze(&place, &["/var"]).succeeds();
    thaw(&place).succeeds();
    freeze(&place, &["/usr"]).fails(1, &["this pool holds nothing of it"]);
    writer.finish().succeeds();
    assert_eq!(freeze(&place, &["--", "sh", "-c", "exit 3"]).code, Some(3), "nothing is to be frozen");
}

/// As what takes snapshots of a whole machine calls it, with several logs.
#[test]
fn a_hook_freezes_several_pools_together() {
    let places = [Place::new(), Place::new()];
    let mut writers = places.each_ref().map(Writer::start);
    writers.iter_mut().for_each(|writer| writer.write(3));
    let hook = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/hooks/seawall-freeze-hook");
    let run = |pools: &[&str], word: &str| {
        let options: String = pools.iter().map(|pool| format!("--pool {pool} ")).collect();
        let mut hook = Command::new(&hook);
        hook.arg(word).env("SEAWALL", SEAWALL).env("SEAWALL_FREEZE", options + "--for 20s");
        Said::from(hook.output().expect("it runs"))
    };
    let pools = places.each_ref().map(Place::pool);
    let frozen = || places.each_ref().map(|place| !place.status()["frozen"].is_null());
    run(&pools, "freeze").succeeds();
    assert_eq!(frozen(), [true; 2]);
    run(&pools, "thaw").succeeds();
    assert_eq!(frozen(), [false; 2]);
    assert!(places.iter().all(|place| place.guard().exists()));
    // All or none.
    run(&[pools[0], "/nowhere"], "freeze").fails(1, &["/nowhere"]);
    assert_eq!(frozen(), [false; 2]);
    run(&pools[1..], "freeze").succeeds();
    run(&pools, "freeze").fails(1, &["already frozen"]);
    assert_eq!(frozen(), [false, true], "the first one was let go again");
    run(&pools[1..], "thaw").succeeds();
    assert_eq!(run(&pools, "freez").code, Some(2));
    for writer in writers {
        writer.finish().succeeds();
    }
}

/// Stands for PostgreSQL: changes a data file, and when it is told to that one and a new one.
const CHANGES: &str = "
    sub put {
        sysopen(my $f, $_[0], 01 | 0100 | 02000) or die;
        syswrite($f, $_[1] x 8192) == 8192 or die;
    }
    put('base/5/1', 'a');
    open(my $r, '>', 'ready') or die;
    <STDIN>;
    put('base/5/1', 'b');
    put('base/5/2', 'c');";

#[test]
fn under_the_policy_atomic_changes_wait_for_the_thaw() {
    let Some(place) = cluster::place() else { return };
    let mut run = cluster::start_until(&place, "atomic", CHANGES, "ready");
    freeze(&place, &["--for", "61s"]).fails(1, &["60 s at most", "snapshot"]);
    let said = freeze(&place, &[]);
    assert!(said.succeeds().out.contains("writes wait") && said.out.contains("for 30 s"), "{}", said.out);
    cluster::go_on(&mut run);
    std::thread::sleep(Duration::from_millis(400));
    let len = |name: &str| fs::metadata(place.file(name)).map_or(0, |file| file.len());
    assert_eq!((len("base/5/1"), len("base/5/2")), (8192, 0));
    assert!(!place.file("done").exists());
    let status = place.status();
    assert_eq!((&status["guards"], &status["frozen"]["writes_wait"]), (&0.into(), &true.into()));
    assert!(place.seawall(&["status", "--pool", place.pool()]).out.contains("writes wait, no guards"));
    thaw(&place).succeeds();
    wait_for("both changes", || place.file("done").exists());
    assert_eq!((len("base/5/1"), len("base/5/2")), (16384, 8192));
    let status = place.status();
    for name in ["5/1", "5/2"] {
        let file = cluster::file(&status, name).expect("managed");
        assert_eq!((&file["tracked"], &file["writes"]), (&true.into(), &file["writes"]), "{file}");
        assert!(file["writes"].as_u64() > Some(0), "not around the log: {file}");
    }
    assert_eq!(status["torn"], false);
    cluster::finish(run);
}

#[test]
fn changes_wait_no_longer_than_the_limit_and_the_daemon() {
    for ends in ["limit", "daemon"] {
        let Some(place) = cluster::place() else { return };
        let mut run = cluster::start_until(&place, "atomic", CHANGES, "ready");
        freeze(&place, &["--for", if ends == "limit" { "1s" } else { "60s" }]).succeeds();
        cluster::go_on(&mut run);
        std::thread::sleep(Duration::from_millis(300));
        assert!(!place.file("done").exists(), "{ends}");
        if ends == "daemon" {
            kill(place.daemon().expect("a daemon"));
        }
        let begin = Instant::now();
        wait_for("both changes", || place.file("done").exists());
        assert!(begin.elapsed() < Duration::from_secs(20), "{ends}: {:?}", begin.elapsed());
        cluster::finish(run);
        thaw(&place).fails(1, &[]);
    }
}

/// One that commits all the time, over one connection, and counts what was acknowledged.
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

/// An atomic snapshot, as far as the database can tell: it stands still while its files are copied.
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
    freeze(&place, &["--", "sh", "-c", &snapshot(&[pid], place.data.path(), copied.path())]).succeeds();
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

// Holds: R5
#[test]
fn a_copy_of_a_frozen_postgres_starts_bare_with_all_that_was_acknowledged() {
    let Some(server) = Postgres::start() else { return };
    let snapshot = |copied: &Path| snapshot(&server.pids(), &server.data(), copied);
    postgres_is_copied(&server, snapshot);
}

/// What waits makes one moment of the time that the copy takes: nobody stops the server.
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

/// On a disk: what is frozen is retired there too, before the guard goes. A power cut then finds nothing to replay, which
/// could undo what was written since.
// Holds: K8
#[test]
fn nothing_of_a_frozen_file_is_replayed_after_a_power_cut() {
    let mut place = Place::bare();
    place.pool = place.data.path().join("seawall.log");
    place.seawall(&["init", "--block", place.pool(), "--size", "16M"]).succeeds();
    let mut writer = Writer::start(&place);
    writer.write(10);
    assert_eq!(file(&place)["live"], true);
    freeze(&place, &[]).succeeds();
    writer.write(5);
    common::kill_everything(&place, writer);
    place.in_memory().iter().for_each(|path| fs::remove_file(path).expect("removed"));
    assert!(!place.guard().exists());
    let report = place.seawall(&["recover", "--replay", "--json", "--pool", place.pool()]).json();
    assert_eq!((&report["live"], &report["files"]), (&0.into(), &Value::Array(Vec::new())), "{report}");
    assert_eq!(Writer::found(&place), 15);
}
