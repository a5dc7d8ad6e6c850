//! Asynchronous writes make exactly their files untracked, and nothing that was acknowledged is lost by it.
//!
//! `native/uring.c`, linked to liburing, writes `a-wal` by requests while it writes `b-wal` by ordinary calls.
//! Each mode is played twice: to look at the files' states, and through a power cut at its end.

use crate::common::bounded::Running;
use crate::common::crash::Crash;
use crate::common::seawall::{Pool, bare_only};
use crate::common::work::Work;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const POOL: &str = "64M";

fn requests(program: &Path, mode: &str, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg(mode).arg(directory);
    command
}

/// Whether a file is in the log, and how many of its fsyncs were real.
#[derive(Debug)]
struct State {
    tracked: bool,
    real_syncs: u64,
}

fn state(pool: &Pool, name: &str) -> State {
    let said = pool.command(&["status", "--json"]).expect_success("seawall status");
    let status: serde_json::Value = serde_json::from_str(&said.stdout).expect("JSON");
    let files = status["files"].as_array().expect("a list of files");
    let named = |file: &&serde_json::Value| file["path"].as_str().is_some_and(|path| path.ends_with(name));
    let file = files.iter().find(named).unwrap_or_else(|| panic!("{name} is not managed: {}", said.stdout));
    State {
        tracked: file["tracked"].as_bool().expect("a truth value"),
        real_syncs: file["real_syncs"].as_u64().expect("a number"),
    }
}

/// The states that `names` are in when `mode` has been played.
fn states<const N: usize>(mode: &str, names: [&str; N]) -> Option<[State; N]> {
    let work = Work::new(mode);
    let program = work.uring_program().filter(|_| !bare_only())?;
    let directory = work.directory("data");
    let pool = Pool::new(&format!("async-{mode}"), POOL);
    let command = requests(&program, mode, &directory);
    let mut run = Running::start(&mut pool.around(&directory, &command), mode);
    run.wait_for("ready", LIMIT);
    run.tell("go");
    run.wait_for("done", LIMIT);
    Some(names.map(|name| state(&pool, name)))
}

fn survives(mode: &str) {
    if bare_only() || Work::new("probe").uring_program().is_none() {
        return;
    }
    let build = |work: &Work| -> PathBuf { work.uring_program().expect("it could be built before") };
    let mut crash =
        Crash::play_program(mode, POOL, false, |work, directory| requests(&build(work), mode, directory));
    let expected = crash.cut_power();
    let said = crash.pool.replay();
    crash.compare(&expected, "after the replay", &said.output());
}

/// Only the file that is written by requests leaves the log, and its sync is real.
fn one(mode: &str) {
    if let Some([a, b]) = states(mode, ["a-wal", "b-wal"]) {
        assert!(!a.tracked, "a-wal is written by requests and must not be in the log: {a:?}");
        assert!(a.real_syncs >= 2, "the sync after the requests was not real: {a:?}");
        assert!(b.tracked, "b-wal is not written by requests and must stay in the log: {b:?}");
    }
    survives(mode);
}

/// Which file is written cannot be seen: none may be in the log.
fn all(mode: &str) {
    if let Some([a, b]) = states(mode, ["a-wal", "b-wal"]) {
        assert!(!a.tracked && !b.tracked, "both must be out of the log: a-wal {a:?}, b-wal {b:?}");
    }
    survives(mode);
}

macro_rules! modes {
    ($rule:ident: $($test:ident: $mode:literal),* $(,)?) => {$(
        #[test]
        fn $test() {
            $rule($mode);
        }
    )*};
}

modes! { one:
    // Holds: P4
    an_io_uring_holds_the_file_it_writes: "uring",
    submissions_that_wait_hold_as_well: "wait",
    space_calls_and_syncs_of_an_io_uring: "operations",
    // Holds: P4
    libaio_holds_the_file_it_writes: "aio",
}

modes! { all:
    // Holds: P4
    a_raw_io_uring_holds_everything: "raw",
    an_io_uring_with_a_kernel_thread_holds_everything: "sqpoll",
    registered_files_hold_everything: "registered",
    linked_requests_hold_everything: "linked",
    requests_for_a_worker_hold_everything: "worker",
}

/// The file is synced by O_DSYNC alone, which was taken off its descriptor.
#[test]
fn a_request_keeps_the_promise_of_o_dsync() {
    survives("dsync");
}

/// A file may become managed after its requests: it is remembered under whatever name.
#[test]
fn a_file_renamed_after_its_requests_is_held() {
    if let Some([a, c]) = states("renamed", ["a-wal", "c-wal"]) {
        assert!(!c.tracked, "c-wal was written by requests: {c:?}");
        assert!(a.tracked, "a-wal was not: {a:?}");
    }
}
