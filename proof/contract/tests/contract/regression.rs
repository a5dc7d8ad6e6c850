//! What went wrong in our peers, one test each: `regression_*`.
//!
//! The crash tests play a *scene* (`src/scene`) under Seawall, kill -9 everything, take the machine's
//! power away, replay the log and compare. Power is cut in one of two ways:
//! * as root, the scene's files lie on a small ext4 of their own, and what its image holds at the
//!   moment of the crash takes the disk's place: exactly what was synced is there;
//! * else, or when SEAWALL_CONTRACT_STALE=1, the daemon is stopped at the scene's beginning (so it
//!   syncs nothing), and the bytes of that moment are written back into the same inodes.

use crate::common::bounded::{self, Running};
use crate::common::crash::{Crash, Power};
use crate::common::seawall::{Pool, bare, bare_only, setting};
use crate::common::work::Work;
use crate::common::{files, processes};
use std::process::Command;
use std::time::Duration;

/// Plays `scene`, cuts the power, replays: the files must be what they were.
fn survives(scene: &str, pool_size: &'static str) {
    if bare_only() {
        return;
    }
    Crash::play(scene, pool_size).survives();
}

macro_rules! crash_tests {
    ($($test:ident: $scene:literal),* $(,)?) => {$(
        #[test]
        fn $test() {
            survives($scene, "64M");
        }
    )*};
}

crash_tests! {
    // Holds: P1
    regression_fsync_is_durable: "fsync",
    // Holds: P1
    regression_fdatasync_as_well_as_fsync: "fdatasync",
    regression_openat_and_pwritev_are_logged: "vectored",
    regression_append_is_logged: "append",
    // Holds: P1
    regression_dsync_is_logged: "dsync",
    // Holds: P2
    regression_large_writes_are_whole: "large",
    // Holds: P3
    regression_truncate_is_logged: "truncate",
    // Holds: P3
    regression_open_truncate_is_logged: "open-truncate",
    // Holds: P3
    regression_rename_is_followed: "rename",
    regression_rename_over_a_managed_file: "rename-over",
    // Holds: P3
    regression_unlinked_files_records_do_not_come_back: "unlink",
    regression_link_is_followed: "link",
    regression_second_process: "second-process",
    regression_fork_without_exec: "fork",
    regression_two_concurrent_writers: "two-writers",
    // Holds: P4
    regression_mapping_is_not_rolled_back: "mapping",
    // Holds: P3
    regression_fallocate_takes_part_in_the_order: "fallocate",
}

/// Whoever looks at its first thread alone takes the process for ended.
#[test]
fn regression_the_first_thread_of_a_process_ends() {
    if bare_only() {
        return;
    }
    let crash = Crash::play("first-thread-ends", "64M");
    let said = crash.pool.command(&["stop"]);
    assert!(!said.status.success(), "the daemon left a process that writes\n{}", said.output());
    crash.survives();
}

/// Nobody could register the new file, so nothing of its O_DSYNC may be lost.
#[test]
fn regression_dsync_on_a_new_file_while_the_daemon_is_away() {
    if bare_only() {
        return;
    }
    Crash::play_with("dsync-new", "64M", true).survives();
}

// Holds: P4
#[test]
fn regression_log_full() {
    survives("log-full", "16M");
}

/// The log full for as long as SEAWALL_SMOKE_SECONDS says (minutes, when asked): no write fails.
#[test]
fn regression_log_full_for_long() {
    if bare_only() {
        return;
    }
    let seconds = setting("SEAWALL_SMOKE_SECONDS", 3);
    let work = Work::new("full");
    let directory = work.directory("data");
    let pool = Pool::new("full", "16M");
    let mut smoke = bare(&["smoke"]);
    smoke.arg(&directory).args(["--processes", "1", "--threads", "6", "--no-kills"]);
    smoke.args(["--seconds", &seconds.to_string()]);
    let limit = Duration::from_secs(120 + 2 * seconds);
    bounded::run(&mut pool.around(&directory, &smoke), "writers on a full log", limit)
        .expect_success("writers on a full log");
}

/// A file renamed with plain tools between the crash and recovery is found by its handle, or the
/// recovery fails and names it; its records are not lost in silence.
// Holds: R2
#[test]
fn regression_file_moved_before_recovery() {
    if bare_only() {
        return;
    }
    let mut crash = Crash::play("fsync", "64M");
    let expected = crash.cut_power();
    let (from, to) = (crash.directory().join("a-wal"), crash.directory().join("moved-wal"));
    std::fs::rename(&from, &to).expect("both names are in our directory");
    let said = crash.pool.command(&["recover", "--replay"]);
    let found = files::contents(&crash.directory());
    let followed = said.status.success()
        && found.get("moved-wal") == expected.get("a-wal")
        && !found.contains_key("a-wal");
    let refused = !said.status.success() && said.stderr.contains("a-wal");
    assert!(
        followed || refused,
        "neither followed nor refused by name: {}\n{}",
        said.ending(),
        said.output()
    );
}

/// A file that vanished: recovery must not be silent about its records, and must not invent it.
// Holds: P5, R2
#[test]
fn regression_file_gone_before_recovery() {
    if bare_only() {
        return;
    }
    let mut crash = Crash::play("fdatasync", "64M");
    let expected = crash.cut_power();
    std::fs::remove_file(crash.directory().join("a-wal")).expect("the file is ours");
    let said = crash.pool.command(&["recover", "--replay"]);
    let found = files::contents(&crash.directory());
    assert!(!found.contains_key("a-wal"), "recovery invented a file\n{}", said.output());
    assert!(
        said.output().contains("a-wal"),
        "recovery does not name the file whose records it cannot replay\n{}",
        said.output()
    );
    if !said.status.success() {
        // Refused as a whole: nothing may have been replayed halfway, and the operator can give up the lost file.
        crash
            .pool
            .command(&["recover", "--replay", "--accept-loss"])
            .expect_success("seawall recover --accept-loss");
    }
    let found = files::contents(&crash.directory());
    assert!(
        found.get("b-wal") == expected.get("b-wal"),
        "the other file was not recovered\n{}",
        said.output()
    );
}

/// After a reboot (a boot id the pool does not know) `seawall run` replays before COMMAND starts.
// Holds: P5, K7
#[test]
fn regression_recovery_is_on_by_default() {
    if bare_only() {
        return;
    }
    let mut crash = Crash::play("fsync", "64M");
    let Power::Image(_) = &crash.power else {
        eprintln!("skipped: showing another boot id needs root");
        return;
    };
    let expected = crash.cut_power();
    let cat = {
        let mut command = Command::new("md5sum");
        command.arg(crash.directory().join("a-wal"));
        command
    };
    let run = crash.pool.around(&crash.directory(), &cat);
    // A machine that has just started, with another boot id: a time and a mount namespace of our own. The kernel
    // tells the start in whole seconds (/proc/stat, btime), and unshare(1) takes whole seconds: both rounded down,
    // the start seems up to two seconds earlier than now. The files must be older than that.
    std::thread::sleep(Duration::from_secs(2));
    let uptime = std::fs::read_to_string("/proc/uptime").expect("Linux tells its uptime");
    let seconds: u64 =
        uptime.split('.').next().and_then(|seconds| seconds.parse().ok()).expect("seconds, a dot");
    let mut script = Command::new("unshare");
    script.args(["--time", "--fork", "--kill-child", "--boottime", &format!("-{seconds}")]);
    let boot_id = "echo 11111111-2222-4333-8444-555555555555 > \"$0\"; mount --bind \"$0\" /proc/sys/kernel/random/boot_id; exec \"$@\"";
    script.args(["-m", "sh", "-ec", boot_id]).arg(crash.work.path().join("boot_id"));
    script.arg(run.get_program()).args(run.get_args());
    let said = bounded::run(&mut script, "seawall run after a reboot", Duration::from_secs(60))
        .expect_success("seawall run after a reboot");
    crash.compare(&expected, "after `seawall run`", &said.output());
}

/// SQLite in both journal modes: DELETE, VACUUM and two writers, the same rows as bare.
#[test]
fn regression_sqlite_delete_and_vacuum() {
    if Command::new("sqlite3").arg("--version").output().is_err() {
        eprintln!("skipped: no sqlite3 shell here");
        return;
    }
    for mode in ["wal", "delete", "truncate", "persist"] {
        let work = Work::new("sqlite");
        let (left, right) = (work.directory("bare"), work.directory("seawall"));
        let limit = Duration::from_secs(120);
        let expected =
            bounded::run(&mut sqlite(&left, mode), "sqlite3, bare", limit).expect_success("sqlite3, bare");
        if bare_only() {
            continue;
        }
        let pool = Pool::new("sqlite", "64M");
        let found =
            bounded::run(&mut pool.around(&right, &sqlite(&right, mode)), "sqlite3 under seawall", limit)
                .expect_success("sqlite3 under seawall");
        assert_eq!(expected.stdout, found.stdout, "journal mode {mode}: rows differ");
        drop(pool);
    }
}

fn sqlite(directory: &std::path::Path, mode: &str) -> Command {
    let script = format!(
        "db=$0/t.db; s() {{ sqlite3 -cmd '.timeout 20000' \"$db\" \"$1\"; }}
         s 'PRAGMA journal_mode={mode}; PRAGMA synchronous=FULL; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); CREATE TABLE c(n INTEGER PRIMARY KEY, who TEXT);'
         s \"WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM r WHERE x<5000) INSERT INTO t SELECT x, hex(x*x) FROM r;\"
         s 'DELETE FROM t WHERE a%3=0; VACUUM;'
         w() {{ i=0; while [ $i -lt 25 ]; do s \"PRAGMA synchronous=FULL; INSERT INTO c(who) VALUES('$1');\" > /dev/null || echo failed $1; i=$((i+1)); done; }}
         w one & w two & wait
         s 'DELETE FROM t WHERE a%7=0; UPDATE t SET b=b||1 WHERE a%5=0; VACUUM; PRAGMA integrity_check; SELECT count(*), sum(a), sum(length(b)) FROM t; SELECT who, count(*) FROM c GROUP BY who;'"
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(directory);
    command
}

/// The command is killed, nothing else: the next run carries on with the files as they were.
// Holds: K1, K6
#[test]
fn regression_killed_command_loses_nothing() {
    if bare_only() {
        return;
    }
    let work = Work::new("killed");
    let directory = work.directory("data");
    let pool = Pool::new("killed", "64M");
    let mut run = Running::start(
        &mut pool.around(&directory, &bare(&["scene", "two-writers", &directory.to_string_lossy()])),
        "a scene",
    );
    run.wait_for("ready", Duration::from_secs(30));
    run.tell("go");
    run.wait_for("done", Duration::from_secs(60));
    let expected = files::contents(&directory);
    for pid in processes::descendants_naming("two-writers") {
        processes::signal(pid, libc::SIGKILL);
    }
    let _ = run.finish(Duration::from_secs(60));
    let mut again = Command::new("md5sum");
    again.args([directory.join("a-wal"), directory.join("b-wal")]);
    bounded::run(&mut pool.around(&directory, &again), "the next run", Duration::from_secs(60))
        .expect_success("the next run");
    let changed = files::changed(&expected, &files::contents(&directory));
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}
