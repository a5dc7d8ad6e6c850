//! The daemon's life: joined, replaced, ended; guards up and down; crashes.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use seawall_daemon::AddRoot;
use seawall_daemon::control::{Added, Control, Stop, Stopped};
use seawall_wire::message::Kind;

use crate::common::{Place, Writer, has, kill, kill_everything, wait_for, wait_for_end};

#[test]
fn a_guard_is_up_while_files_are_managed_and_down_after_a_clean_end() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(3);
    assert!(place.guard().exists());
    writer.finish().succeeds();
    assert!(!place.guard().exists());
    assert_eq!(place.daemon(), None, "the daemon ended with the last run");
    assert_eq!(fs::metadata(place.file("x-wal")).expect("the file").len(), 3 * 4096);
}

/// Two commands that end in the same moment: neither may leave the end of the log to the other one, or the guards are
/// still up when both have returned.
#[test]
fn of_two_that_leave_at_once_one_closes_the_log() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(3);
    let root = AddRoot {
        preset: "sqlite".into(),
        policy: "tail".into(),
        path: place.data.path().canonicalize().expect("it exists"),
        data: place.data.path().canonicalize().expect("it exists"),
        recovery: None,
    };
    let runs = [(); 2].map(|()| Control::connect(&place.pool).expect("answers").expect("a daemon"));
    for run in &runs {
        run.request::<Added>(Kind::AddRoot, &root).expect("held");
    }
    writer.finish().succeeds();
    assert!(place.guard().exists(), "two are left");
    // As both would ask before either's connection has ended.
    let leave = Stop { if_idle: true, stay: false };
    let ended =
        runs.each_ref().map(|run| run.request::<Stopped>(Kind::Stop, &leave).expect("an answer").ended);
    assert_eq!(ended, [false, true]);
    assert!(!place.guard().exists());
}

/// A command that uses a daemon which another one left behind, or a service's, leaves the log closed and the daemon there.
#[test]
fn a_daemon_that_was_to_stay_stays_when_a_later_command_leaves() {
    let place = Place::new();
    let data = ["--preset", "sqlite", "--data", "."];
    let keep = ["run", "--keep", "--pool", place.pool()];
    place.seawall(&[&keep[..], &data, &["--", "true"]].concat()).succeeds();
    let kept = place.daemon();
    assert!(kept.is_some(), "it was to stay");
    let mut writer = Writer::start(&place);
    writer.write(3);
    assert!(place.guard().exists());
    writer.finish().succeeds();
    assert!(!place.guard().exists(), "the log is closed");
    assert_eq!(place.daemon(), kept);
    place.seawall(&["stop", "--pool", place.pool()]).succeeds();
    assert_eq!(place.daemon(), None);
}

/// `seawall status | head -1`.
#[test]
fn who_stops_reading_ends_the_command_without_a_word() {
    let place = Place::new();
    for command in [&["status", "--pool", place.pool()][..], &["inspect", place.pool()]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let ended = place.command(command).stdout(writer).output().expect("seawall starts");
        assert_eq!(ended.status.signal(), Some(Signal::SIGPIPE as i32), "{command:?}");
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    }
}

/// Monitoring that looks every second must not keep a database from starting.
#[test]
fn who_reads_the_pool_does_not_stop_a_daemon_from_starting() {
    let place = Place::new();
    let reader = seawall_media::Region::map_read_only(
        fs::File::open(&place.pool).expect("the pool"),
        fs::metadata(&place.pool).expect("its size").len(),
    )
    .expect("a mapping, as `seawall status` and `seawall inspect` make one");
    place.run(&["true"]).succeeds();
    drop(reader);
    let file = fs::File::options().read(true).write(true).open(&place.pool).expect("the pool");
    let _writer = seawall_media::Region::map(&file, 4096, false).expect("a mapping");
    place.run(&["true"]).fails(125, &["still write to the log"]);
}

#[test]
fn after_a_crash_the_bare_database_is_stopped_until_recovery() {
    let place = Place::new();
    let bare = |sql: &str| Command::new("sqlite3").arg(place.file("x")).arg(sql).output().expect("runs");
    if has("sqlite3") {
        assert!(bare("create table t(x)").status.success());
    }
    let mut writer = Writer::start(&place);
    writer.write(20);
    kill_everything(&place, writer);
    assert!(place.guard().exists());
    if has("sqlite3") {
        let bare = bare("select * from t");
        assert!(!bare.status.success());
        assert!(String::from_utf8_lossy(&bare.stderr).contains("disk I/O error"));
    }
    let report = place.seawall(&["recover", "--json", "--pool", place.pool()]).json();
    assert_eq!(report["replayed"], false, "the machine did not restart");
    assert!(!place.guard().exists());
    let again = place.seawall(&["recover", "--json", "--pool", place.pool()]).json();
    assert_eq!(again["live"], 0);
}

// Holds: K6
#[test]
fn run_recovers_by_itself() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(20);
    kill_everything(&place, writer);
    place.run(&["true"]).succeeds();
    assert!(!place.guard().exists());
}

/// The page cache is whole after a crash of processes, but not after a sync that failed: what the kernel dropped
/// then is in the log alone, and a sync that succeeds now must not retire it.
// Holds: R26
#[test]
fn a_sync_that_had_failed_is_not_retried_into_success_by_a_restart() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(5);
    let (program, daemon) = (writer.pid(), place.daemon().expect("a daemon"));
    kill(writer.run.id().into());
    kill(daemon);
    writer.write(5);
    Writer::fail_syncs(program);
    kill(program.into());
    writer.run.wait().expect("reaped");
    wait_for_end(program.into());
    let file = fs::OpenOptions::new().write(true).open(place.file("x-wal")).expect("open");
    file.write_all_at(&[0; 5 * 4096], 5 * 4096).expect("the pages are dropped");
    place.run(&["true"]).succeeds();
    assert_eq!(Writer::found(&place), 10);
    assert!(!place.guard().exists());
}

// Holds: K2
#[test]
fn a_dead_daemon_is_replaced_and_the_log_goes_on() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.outlives(3, &place);
    let said = writer.finish();
    said.succeeds().says(&["a new one has taken over"]);
    assert_eq!(Writer::found(&place), 35);
    assert!(!place.guard().exists());
}

#[test]
fn several_runs_share_one_daemon() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(1);
    let daemon = place.daemon();
    place.run(&["true"]).succeeds();
    assert_eq!(place.daemon(), daemon, "the other run still needs it");
    assert!(place.guard().exists());
    writer.finish().succeeds();
    assert_eq!(place.daemon(), None);
}

#[test]
fn many_runs_at_once_all_find_the_daemon() {
    let place = Place::new();
    let runs: Vec<_> = (0..8).map(|_| place.run_command(&["true"]).spawn().expect("starts")).collect();
    for mut run in runs {
        assert!(run.wait().expect("ends").success());
    }
}

#[test]
fn two_pools_for_the_same_data_are_refused() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(2);
    let other = place.ram("other.pool");
    place.seawall(&["init", &other, "--size", "16M", "--emulated"]).succeeds();
    let run = ["run", "--pool", &other, "--preset", "sqlite", "--data", ".", "--", "true"];
    place.seawall(&run).fails(125, &["belongs to the pool", place.pool(), "seawall recover"]);
    writer.finish().succeeds();
    place.seawall(&run).succeeds();
}

#[test]
fn a_lost_pool_is_given_up_only_by_name() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(20);
    kill_everything(&place, writer);
    let data = place.data.path().to_str().expect("a path").to_owned();
    place.seawall(&["recover", "--abandon", &data]).fails(1, &["still exists", "may hold commits"]);
    let saved = fs::read(&place.pool).expect("the pool");
    fs::remove_file(&place.pool).expect("lost");
    place.seawall(&["recover", "--abandon", &data]).succeeds();
    assert!(!place.guard().exists());
    // So that what it has in memory is found at the end, and goes.
    fs::write(&place.pool, saved).expect("the pool again");
}

#[test]
fn sigterm_to_the_daemon_drains_and_the_guard_stays_while_clients_live() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(5);
    let daemon = place.daemon().expect("a daemon");
    Command::new("kill").arg(daemon.to_string()).status().expect("kill");
    wait_for("another daemon", || place.daemon().is_some_and(|pid| pid != daemon));
    writer.write(5);
    assert!(place.guard().exists());
    writer.finish().succeeds();
    assert!(!place.guard().exists());
}

#[test]
fn signals_reach_the_command() {
    let place = Place::new();
    let script = "trap 'exit 42' TERM; echo ready; while :; do sleep 0.05; done";
    let mut run = place.run_command(&["sh", "-c", script]);
    let mut run = run.stdout(std::process::Stdio::piped()).spawn().expect("starts");
    let mut ready = [0; 6];
    std::io::Read::read_exact(run.stdout.as_mut().expect("piped"), &mut ready).expect("ready");
    Command::new("kill").arg(run.id().to_string()).status().expect("kill");
    assert_eq!(run.wait().expect("ends").code(), Some(42));
}

#[test]
fn regression_the_command_starts_with_no_signal_blocked() {
    let place = Place::new();
    let said = place.run(&["grep", "SigBlk", "/proc/self/status"]);
    assert_eq!(said.succeeds().out.split_whitespace().last(), Some("0000000000000000"));
}

#[test]
fn status_is_complete() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(10);
    let status = place.status();
    assert_eq!(status["medium"], "emulated (RAM: survives a crash of the database, not of the machine)");
    assert_eq!(status["medium_name"], "emulated");
    let file = &status["files"][0];
    assert!(file["path"].as_str().is_some_and(|path| path.ends_with("/x-wal")), "{file}");
    assert_eq!(file["tracked"], true, "{file}");
    assert_eq!(status["clients"].as_array().map(Vec::len), Some(1));
    let events = status["events"].as_array().expect("events");
    let persist = events.iter().find(|e| e["name"] == "log file parallel write").expect("the event");
    assert!(persist["count"].as_u64() > Some(0), "{persist}");
    assert_eq!(place.seawall(&["drain", "--json", "--pool", place.pool()]).json()["drained"], true);
    writer.finish().succeeds();
}

/// The power failed when the log had been closed, and before its guard's end was on the disk.
#[test]
fn regression_a_guard_that_outlived_the_close_comes_down() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(3);
    let (guard, kept) = (place.file("x-journal"), place.file("kept"));
    let copied = Command::new("cp").arg("-a").args([&guard, &kept]).status().expect("cp");
    assert!(copied.success());
    writer.finish().succeeds();
    fs::rename(&kept, &guard).expect("the guard as it was");
    place.run(&["true"]).succeeds();
    assert!(!place.guard().exists());
}

/// A daemon that takes over a live log knows directories whose guards were never raised.
#[test]
fn regression_a_guard_is_raised_after_a_take_over() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(2);
    // Beside SQLite's directory, not inside it, where everything would be SQLite's.
    let cluster = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let path = |name: &str| cluster.path().join(name);
    fs::create_dir(path("pg_wal")).expect("a directory");
    fs::write(path("PG_VERSION"), "15\n").expect("a file");
    let postgres = |command: &[&str]| {
        let mut run = place.command(&["run", "--pool", place.pool(), "--preset", "postgres", "--data"]);
        run.arg(cluster.path()).arg("--").args(command);
        run
    };
    assert!(postgres(&["true"]).status().expect("seawall starts").success());
    let daemon = place.daemon().expect("a daemon");
    kill(daemon);
    wait_for("another daemon", || place.daemon().is_some_and(|pid| pid != daemon));
    let segment = format!("of={}", path("pg_wal/000000010000000000000001").display());
    let mut wal = postgres(&["dd", &segment, "bs=4096", "iflag=fullblock", "oflag=dsync", "status=none"]);
    let mut wal = wal.stdin(Stdio::piped()).spawn().expect("seawall starts");
    wal.stdin.as_mut().expect("piped").write_all(&[1; 4096]).expect("the writer lives");
    wait_for("the guard", || path("backup_label").exists());
    drop(wal.stdin.take());
    assert!(wal.wait().expect("the run ends").success());
    writer.finish().succeeds();
    // The daemon may have heard of the second run's end before that of the first: then it closes on its own.
    wait_for("the guard's end", || !path("backup_label").exists());
}
