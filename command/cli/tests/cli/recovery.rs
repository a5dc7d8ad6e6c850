//! `--recovery`: checkpoints that are near, and a start after a crash that asks little of anybody.

use crate::common;
use std::process::Command;

use crate::common::mariadb::Mariadb;
use crate::common::postgres::Postgres;
use crate::common::{Place, cluster, wait_for};
use seawall_media::magic;

/// As PostgreSQL's crash recovery does: every file is opened for writing and synced, few are changed.
const SYNCS_ALL: &str = "use IO::Handle; use Fcntl; \
    for my $n (1 .. 50) { sysopen(my $f, \"base/5/$n\", O_RDWR) or die; $f->sync or die; close $f; } \
    sysopen(my $f, 'base/5/7', O_RDWR) or die; syswrite($f, 'x') == 1 or die; $f->sync or die;";

// Holds: admin/RESTART#what-it-reaches
#[test]
fn a_file_that_is_only_synced_is_not_in_the_log() {
    let Some(place) = cluster::place() else { return };
    (1..=50).for_each(|n| std::fs::write(place.file(&format!("base/5/{n}")), [7; 8192]).expect("written"));
    let run = cluster::start(&place, "atomic", SYNCS_ALL);
    let status = place.status();
    let files = status["files"].as_array().expect("files");
    assert_eq!(files.len(), 1, "the daemon was asked for what nobody changed: {files:?}");
    assert!(cluster::file(&status, "/base/5/7").is_some_and(|file| file["tracked"] == true));
    cluster::finish(run);
}

const WRITES: &str = "CREATE TABLE IF NOT EXISTS t (n int, filler text); \
    INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 100000) n";
const REDO: &str = "SELECT (pg_current_wal_insert_lsn() - redo_lsn)::bigint FROM pg_control_checkpoint()";

/// Less than the server leaves by itself, and so little that what comes next asks for no checkpoint.
const LITTLE: u64 = 1 << 20;

// Holds: admin/RESTART#what-it-reaches
#[test]
fn checkpoints_are_near_and_a_crash_shows_how_fast_its_redo_is_replayed() {
    let of_run = ["--policy", "atomic", "--recovery", "1s"];
    let Some(server) = Postgres::start_with(&of_run, &["-c", "full_page_writes=off"]) else { return };
    let ask = |sql: &str| {
        let said = server.psql().args(["-c", sql]).output().expect("psql");
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    };
    let redo = || ask(REDO).parse::<u64>().expect("a number");
    assert_eq!(ask("SHOW max_wal_size"), "32MB", "the server has its settings");
    ask(WRITES);
    wait_for("a checkpoint that was asked for", || redo() < LITTLE);
    let status =
        server.seawall(&["status", "--json", "--pool"]).arg(server.pool()).output().expect("seawall");
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).expect("JSON");
    assert_eq!(status["roots"][0]["recovery"]["goal_ms"], 1000, "{status}");

    ask("INSERT INTO t SELECT n, repeat('y', 100) FROM generate_series(1, 5000) n");
    let log = status["log"].as_str().expect("a path").to_owned();
    server.kill();
    let daemon = || server.seawall(&["status", "--pool"]).arg(server.pool()).output();
    let said = daemon().expect("seawall");
    assert!(said.status.success(), "the log stays open for the next start");
    as_if_noted_before_a_restart(&server);
    server.launch(&of_run, &["-c", "full_page_writes=off"]);
    wait_for("what memory held before", || {
        let said = std::fs::read_to_string(server.said()).expect("written");
        said.contains("the machine was restarted: ") && said.contains(" of what memory had held")
    });
    assert_eq!(ask("SELECT count(*) FROM t WHERE filler LIKE 'y%'"), "5000");
    wait_for("what the recovery showed", || {
        let kept = std::fs::read_dir(server.dir.path().join("state/seawall/recoveries"));
        kept.is_ok_and(|kept| kept.flatten().any(|kept| kept.path().extension() == Some("json".as_ref())))
    });
    if magic::has_believed_directories(rustix::fs::statfs(server.dir.path()).expect("there").f_type as u64) {
        let said = std::fs::read_to_string(log).expect("the daemon's log");
        assert!(said.contains("had its directory synced"), "the kernel synced all of the disk: {said}");
    }
    ends_although_its_checkpoints_are_asked_for(&server);
}

/// A note as the running server's `seawall run` takes them, once a minute, of an earlier boot.
fn as_if_noted_before_a_restart(server: &Postgres) {
    let data = server.data().canonicalize().expect("there");
    let name = data.to_str().expect("text").trim_matches('/').replace('/', "%2f");
    let dir = server.dir.path().join("state/seawall/recoveries");
    let note = "seawall warm 1 of-another-boot\n0 base/1/1259\n7 base/1/gone\nend 2\n";
    std::fs::create_dir_all(&dir).expect("made");
    std::fs::write(dir.join(format!("{name}.warm")), note).expect("written");
    if let Some((uid, gid)) = common::server::user() {
        for dir in dir.ancestors().take(3) {
            std::os::unix::fs::chown(dir, Some(uid), Some(gid)).expect("given");
        }
    }
}

/// A smart shutdown waits until the last session has ended; ours is one.
fn ends_although_its_checkpoints_are_asked_for(server: &Postgres) {
    let postmaster = server.pids()[0];
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'seawall'";
    let is_asked = || server.psql().args(["-c", sessions]).output().is_ok_and(|said| said.stdout == b"1\n");
    wait_for("a session that asks for checkpoints", is_asked);
    let _ = Command::new("kill").args(["-s", "TERM", &postmaster.to_string()]).status();
    wait_for("the end of the server", || !seawall_daemon::process::is_alive(postmaster));
    server.stop();
}

/// 20 MB of redo: more than half of the log that it gets.
const FILLS: &str = "CREATE DATABASE IF NOT EXISTS d; CREATE TABLE IF NOT EXISTS d.t (n int, filler varchar(200)); \
    INSERT INTO d.t SELECT seq, repeat('x', 150) FROM d.seq_1_to_100000";

// Holds: admin/RESTART#what-happens
#[test]
fn a_crash_of_mariadb_shows_how_fast_its_redo_is_replayed() {
    let Some(server) = Mariadb::installed() else { return };
    let (place, sql) = (&server.place, |what: &str| server.sql(what));
    let said = place.file("said");
    let start = || {
        let mut run = place.command(&["run", "--user", "mysql", "--emulated", "--size", "64M"]);
        run.args(["--pool", place.pool(), "--recovery", "2s", "--", "mariadbd"]).args(server.options());
        // An idle server writes its pages back, and then there is nothing to replay: this one takes ten seconds for it.
        run.args(["--innodb-io-capacity=100", "--innodb-adaptive-flushing=OFF"]);
        run.env("XDG_DATA_HOME", place.file("state"));
        server.serve(run.stderr(std::fs::File::create(&said).expect("made")))
    };
    let run = start();
    assert!(sql(FILLS));
    common::kill(common::child(run.id(), "mariadbd").into());
    assert!(!run.wait().success());
    let run = start();
    wait_for("what the recovery showed", || {
        std::fs::read_to_string(&said).expect("written").contains(" of redo replayed")
    });
    let mut kept = std::fs::read_dir(place.file("state/seawall/recoveries")).expect("a directory");
    let kept = std::fs::read(kept.next().expect("a file").expect("read").path()).expect("read");
    let kept: serde_json::Value = serde_json::from_slice(&kept).expect("JSON");
    assert_eq!(kept["measured"], true, "{kept}");
    assert!(sql("SHUTDOWN") && run.wait().success());
}

#[test]
fn what_cannot_be_near_is_said_before_anything_starts() {
    let place = Place::new();
    let run = |words: &[&str]| {
        let mut all = vec!["run", "--pool", place.pool(), "--data", "."];
        all.extend(words);
        place.seawall(&all)
    };
    let is_refused = |preset: &str, time: &str, command: &str, words: &[&str]| {
        run(&["--preset", preset, "--recovery", time, "--", command]).fails(125, words);
    };
    is_refused("sqlite", "1s", "true", &["PostgreSQL and MariaDB", "sqlite"]);
    is_refused("redis", "1s", "true", &["seawall twin"]);
    is_refused("mariadb", "1ms", "true", &["start alone"]);
    is_refused("mariadb", "5s", "true", &["seawall tune"]);
    place.seawall(&["tune", "postgres", "--recovery", "soon"]).fails(2, &["not a time"]);
    let postgres = place.seawall(&["tune", "postgres", "--recovery", "1s"]).out;
    assert!(
        postgres.contains("max_wal_size = 32MB") && postgres.contains("With these settings alone"),
        "{postgres}"
    );
    assert!(place.seawall(&["tune", "mariadb", "--recovery", "1s"]).out.contains("innodb_log_file_size"));
}
