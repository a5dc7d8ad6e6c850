//! Which directories a pool manages: those that a running command has named, as they were named last.

use crate::common;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::{Place, SEAWALL, kill, wait_for_end};

/// A place with directories, and a daemon that stays.
struct Kept {
    place: Place,
}

/// The directories that are managed: name, preset, policy.
type Managed = Vec<(String, String, String)>;

impl Kept {
    fn new() -> Self {
        let kept = Self { place: Place::new() };
        kept.make("first");
        let keep = ["run", "--keep", "--pool", kept.place.pool(), "--preset", "sqlite", "--data", "first"];
        kept.place.seawall(&[&keep[..], &["--", "true"]].concat()).succeeds();
        kept
    }

    fn make(&self, name: &str) -> PathBuf {
        let path = self.place.file(name);
        fs::create_dir(&path).expect("made");
        path
    }

    fn run(&self, preset: &str, policy: &str, data: &str) -> Command {
        let mut run =
            self.place.command(&["run", "--quiet", "--pool", self.place.pool(), "--preset", preset]);
        run.args(["--policy", policy, "--data", data, "--"]);
        run
    }

    /// Runs a shell script, and then `status` as that run sees it.
    fn status_in(&self, mut run: Command, script: &str) -> Value {
        let script =
            format!("{script}\nexec env -u LD_PRELOAD {SEAWALL} status --json --pool {}", self.place.pool());
        let done = run.args(["sh", "-c", &script]).stdin(Stdio::null()).output().expect("seawall starts");
        common::Said::from(done).json()
    }

    /// What is managed while such a run lives.
    fn seen_by(&self, preset: &str, policy: &str, data: &str) -> Managed {
        managed(&self.status_in(self.run(preset, policy, data), "true"))
    }

    /// A run that lives until its input ends.
    fn lasting(&self, preset: &str, policy: &str, data: &str) -> Child {
        let mut run = self.run(preset, policy, data);
        let mut run = run
            .args(["sh", "-c", "echo runs; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("seawall starts");
        let mut line = String::new();
        BufReader::new(run.stdout.as_mut().expect("piped")).read_line(&mut line).expect("it runs");
        run
    }
}

fn end(mut run: Child) {
    drop(run.stdin.take());
    assert!(run.wait().expect("it ends").success());
}

fn managed(status: &Value) -> Managed {
    let word = |root: &Value, key: &str| root[key].as_str().expect("text").to_owned();
    let name = |root: &Value| word(root, "path").rsplit('/').next().expect("a name").to_owned();
    let roots = status["roots"].as_array().expect("directories").iter();
    let mut all: Managed = roots.map(|r| (name(r), word(r, "preset"), word(r, "policy"))).collect();
    all.sort();
    all
}

fn only(name: &str, preset: &str, policy: &str) -> Managed {
    vec![(name.into(), preset.into(), policy.into())]
}

// Holds: admin/RUN#several-runs-one-daemon
#[test]
fn a_run_has_the_policy_that_it_asked_for_whatever_an_earlier_one_had() {
    let kept = Kept { place: Place::new() };
    let data = kept.make("b");
    fs::write(data.join("ib_logfile0"), [0; 4096]).expect("a log for the guard");
    for policy in ["tail", "atomic", "tail", "atomic"] {
        let script = "dd if=/dev/zero of=b/x.ibd bs=16k count=2 conv=fsync status=none";
        let status = kept.status_in(kept.run("mariadb", policy, "b"), script);
        assert_eq!(managed(&status), only("b", "mariadb", policy));
        let files = status["files"].as_array().expect("files").len();
        assert_eq!(files == 1, policy == "atomic", "tablespaces are managed under atomic only");
        assert_eq!(kept.place.daemon(), None, "each has a daemon of its own");
    }
}

#[test]
fn a_daemon_that_stays_manages_what_the_present_runs_have_named() {
    let kept = Kept::new();
    kept.make("second");
    assert_eq!(kept.seen_by("rocksdb", "tail", "second"), only("second", "rocksdb", "tail"));
    // Not even the same directory keeps the preset of a run that is over.
    assert_eq!(kept.seen_by("sqlite", "tail", "second"), only("second", "sqlite", "tail"));
    assert_eq!(kept.seen_by("mariadb", "atomic", "second"), only("second", "mariadb", "atomic"));
    assert_eq!(kept.seen_by("mariadb", "tail", "second"), only("second", "mariadb", "tail"));
}

#[test]
fn who_runs_at_the_same_time_keeps_its_directory() {
    let kept = Kept::new();
    kept.make("second");
    let lasting = kept.lasting("redis", "tail", "first");
    let both = [only("first", "redis", "tail"), only("second", "rocksdb", "tail")].concat();
    assert_eq!(kept.seen_by("rocksdb", "tail", "second"), both);
    end(lasting);
    assert_eq!(kept.seen_by("rocksdb", "tail", "second"), only("second", "rocksdb", "tail"));
}

/// `pg_ctl start` ends, and the server that it started goes on.
#[test]
fn a_process_that_outlives_its_run_keeps_the_directory() {
    let kept = Kept::new();
    kept.make("second");
    let pipe = kept.place.file("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let script = "setsid dd if=pipe of=first/x-wal bs=4096 oflag=dsync status=none >/dev/null 2>&1 & echo $!";
    let started =
        kept.run("sqlite", "tail", "first").args(["sh", "-c", script]).output().expect("seawall starts");
    let pid: u64 = common::Said::from(started).succeeds().out.trim().parse().expect("a pid");
    let mut writer = fs::OpenOptions::new().write(true).open(&pipe).expect("it lives");
    writer.write_all(&[1; 4096]).expect("it reads");
    common::wait_for("a block", || {
        fs::metadata(kept.place.file("first/x-wal")).is_ok_and(|m| m.len() == 4096)
    });
    let both = [only("first", "sqlite", "tail"), only("second", "rocksdb", "tail")].concat();
    assert_eq!(kept.seen_by("rocksdb", "tail", "second"), both);
    kill(pid);
    wait_for_end(pid);
    assert_eq!(kept.seen_by("rocksdb", "tail", "second"), only("second", "rocksdb", "tail"));
}

#[test]
fn another_policy_is_refused_while_a_run_has_named_the_directory() {
    let kept = Kept::new();
    let lasting = kept.lasting("mariadb", "atomic", "first");
    let refused = kept.run("mariadb", "tail", "first").arg("true").output().expect("seawall starts");
    common::Said::from(refused).fails(125, &["use it with --policy atomic", "stop them first"]);
    end(lasting);
    assert_eq!(kept.seen_by("mariadb", "tail", "first"), only("first", "mariadb", "tail"));
}

#[test]
fn a_directory_that_was_made_again_is_there_once() {
    let kept = Kept::new();
    let lasting = kept.lasting("sqlite", "tail", "first");
    for _ in 0..3 {
        fs::rename(kept.place.file("first"), kept.place.file("away")).expect("renamed");
        kept.make("first");
        let script = "dd if=/dev/zero of=first/x-wal bs=4096 count=2 oflag=dsync status=none";
        let status = kept.status_in(kept.run("sqlite", "tail", "first"), script);
        assert_eq!(managed(&status), only("first", "sqlite", "tail"));
        fs::remove_dir_all(kept.place.file("away")).expect("removed");
    }
    end(lasting);
}
