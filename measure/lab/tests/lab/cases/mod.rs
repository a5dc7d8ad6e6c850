//! Cases, really run, in small: what they keep, what they say, what they refuse.

mod loads;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Alone, SIDES};
use seawall_lab::cli::{Common, ReportOptions, RunOptions};
use seawall_lab::trial::record::{self, Record};
use seawall_lab::trial::slices::Label;
use seawall_lab::{notebook, trial};

const SMALL: &str = r#"name = "small"
title = "Redo, in small"
question = "Does it run?"
seconds = 1
measures = ["throughput", "latency_p99", "log_full"]
controls = ["fs"]

[slob]
conf = { UPDATE_PCT = 100, SCALE = "2M", SCAN_TABLE_SZ = "1M", WORK_UNIT = 8, REDO_STRESS = "LITE" }
commit = "per_operation"
schemas = 1
threads = 2
"#;

const NOT_POSSIBLE: &str = r#"
[[configuration]]
name = "dax"
title = "Seawall, log on too many CPUs"
front = "preload"
medium = "emulated"
cpus = 5000
"#;

/// `redo` of the lab with less data, and two of its configurations; `broken`: one more that cannot start.
fn small_redo(dir: &Path, broken: bool) -> PathBuf {
    let mut text = format!("{SMALL}{SIDES}{NOT_POSSIBLE}");
    if broken {
        text += "\n[[configuration]]\nname = \"broken\"\ntitle = \"a server that cannot start\"\nsettings = { shared_buffers = \"lots\" }\n";
    }
    let path = dir.join("small.toml");
    fs::write(&path, text).expect("a case");
    path
}

fn options(alone: &Alone, case: &Path, resume: bool) -> RunOptions {
    RunOptions {
        common: Common {
            seawall: Some(alone.program("seawall")),
            work: Some(alone.dir().join("work")),
            out: alone.dir().join("out"),
            pool_size: Some(16 << 20),
            keep: false,
        },
        cases: vec![case.display().to_string()],
        all: false,
        rounds: Some(1),
        seconds: None,
        quick: false,
        resume,
        apart: None,
    }
}

/// What the program says while it runs the case once.
fn run_as_a_user_does(alone: &Alone, case: &Path) -> String {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_seawall-lab"));
    lab.arg("run").arg(case).args(["--rounds", "1", "--pool-size", "16M", "--seawall"]);
    lab.arg(alone.program("seawall")).arg("--work").arg(alone.dir().join("work"));
    let said = lab.arg("--out").arg(alone.dir().join("out")).output().expect("seawall-lab");
    let words = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success(), "{words}");
    words
}

fn report(alone: &Alone) -> (String, String) {
    let out = alone.dir().join("out");
    let (notebook, html) = (out.join("notebook.md"), out.join("page.html"));
    let options = ReportOptions {
        cases: Vec::new(),
        out,
        notebook: notebook.clone(),
        html: html.clone(),
        readme: None,
    };
    notebook::report(&options).expect("a report");
    (fs::read_to_string(notebook).expect("the notebook"), fs::read_to_string(html).expect("the page"))
}

fn turns(alone: &Alone) -> Vec<String> {
    let records = record::read(&alone.dir().join("out/lab/small.jsonl")).expect("lines");
    let turns = records.into_iter().filter_map(|r| match r {
        Record::Turn(turn) => Some(turn.configuration),
        _ => None,
    });
    turns.collect()
}

#[test]
fn redo_in_small_runs_and_says_what_it_is_worth() {
    let alone = Alone::new();
    let case = small_redo(alone.dir(), false);
    let said = run_as_a_user_does(&alone, &case);
    assert_eq!(turns(&alone), ["fs", "fs-again", "preload"]);
    // What is not possible here is not counted: four were asked for.
    assert!(
        said.contains("not possible here: dax") && said.contains("[1/3] ") && said.contains("[3/3] "),
        "{said}"
    );
    let (notebook, html) = report(&alone);
    for said in [
        "a single run: no result",
        "durable while the OS lives: emulated",
        "commit mode: per operation",
        "Not possible on this machine",
        "not 5000",
        "tmpfs on RAM",
        "log file sync, % of DB time",
    ] {
        assert!(notebook.contains(said), "{said:?} is missing in:\n{notebook}");
        assert!(html.contains(said), "{said:?} is missing in the page");
    }
    assert!(!notebook.contains("better."), "one round was taken for a result:\n{notebook}");
    // It is finished: nothing is measured again.
    trial::run(&options(&alone, &case, true)).expect("nothing to do");
    assert_eq!(turns(&alone).len(), 3);
}

/// A case of one configuration, its load and what else there is to say.
fn one_sided(dir: &Path, more: &str) -> PathBuf {
    let text = format!(
        "name = \"small\"\ntitle = \"T\"\nquestion = \"Q\"\nseconds = 1\nmeasures = [\"throughput\"]\n\
         controls = [\"fs\"]\n{more}\n[[configuration]]\nname = \"fs\"\ntitle = \"the file system\"\nrole = \"baseline\"\n"
    );
    let path = dir.join("small.toml");
    fs::write(&path, text).expect("a case");
    path
}

#[test]
fn orders_and_payments_are_checked_after_a_run_and_after_a_kill() {
    let alone = Alone::new();
    let load = "[tprocc]\nwarehouses = 1\nitems = 500\ncustomers = 30\nusers = 2\n";
    let case = one_sided(alone.dir(), load);
    trial::run(&options(&alone, &case, false)).expect("measured");
    let records = record::read(&alone.dir().join("out/lab/small.jsonl")).expect("lines");
    let turns: Vec<_> = records
        .iter()
        .filter_map(|r| match r {
            Record::Turn(turn) => Some(turn),
            _ => None,
        })
        .collect();
    assert_eq!(turns.len(), 2);
    for turn in turns {
        let killed = turn.killed.expect("it was killed at the end");
        assert!(killed.acknowledged >= 300 && killed.missing == 0, "{killed:?}");
        assert!(turn.figures["nopm"] > 0.0, "{:?}", turn.figures);
    }
    let (notebook, _) = report(&alone);
    assert!(notebook.contains("after every process was killed"), "{notebook}");
}

/// As root, where control groups hold devices to rates; elsewhere the record has the reason, and nothing is pretended.
#[test]
fn stand_ins_for_disks_are_held_to_their_rate_named_and_removed() {
    let alone = Alone::new();
    let load =
        "[pgbench]\ntest = \"simple-update\"\nclients = 4\nscale = 1\n[devices]\nwrites_per_second = 100\n";
    let case = one_sided(alone.dir(), load);
    let ended = trial::run(&options(&alone, &case, false));
    let devices = Command::new("losetup").arg("--all").output().expect("losetup");
    let devices = String::from_utf8_lossy(&devices.stdout).into_owned();
    assert!(!devices.contains(&alone.dir().display().to_string()), "left behind: {devices}");
    if let Err(error) = ended {
        let records = record::read(&alone.dir().join("out/lab/small.jsonl")).expect("lines");
        let told = records.iter().any(|r| matches!(r, Record::NotPossible { why, .. } if !why.is_empty()));
        assert!(told, "{error:#}");
        eprintln!("SKIPPED: {error:#}");
        return;
    }
    let (notebook, _) = report(&alone);
    for said in ["stand-ins: loop devices", "100 writes a second", "ext4 on loop"] {
        assert!(notebook.contains(said), "{said:?} is missing in:\n{notebook}");
    }
}

#[test]
fn a_recorder_is_stopped_and_continued_under_one_load() {
    let alone = Alone::new();
    let text = "name = \"small\"\ntitle = \"T\"\nquestion = \"Q\"\nseconds = 8\nmeasures = [\"throughput\", \"capture_cpu\"]\n\
                sampled = false\n[slices]\nseconds = 0.5\nbelow_percent = 1\n\
                [pgbench]\ntest = \"simple-update\"\nclients = 2\nscale = 1\n\
                [[configuration]]\nname = \"captured\"\ntitle = \"captured\"\nrole = \"baseline\"\ncaptured_every = 1\n";
    let case = alone.dir().join("small.toml");
    fs::write(&case, text).expect("a case");
    trial::run(&options(&alone, &case, false)).expect("measured");
    let records = record::read(&alone.dir().join("out/lab/small.jsonl")).expect("lines");
    let turn = records.iter().find_map(|r| if let Record::Turn(turn) = r { Some(turn) } else { None });
    let turn = turn.expect("a turn");
    let count = |label| turn.slices.iter().filter(|slice| slice.label == label).count();
    assert_eq!([Label::With, Label::Control, Label::Without].map(count), [3, 3, 7]);
    assert!(turn.slices.iter().all(|slice| slice.rate > 0.0), "{:?}", turn.slices);
    // It was stopped for most of the time, and what it took is of the rest.
    assert!(turn.figures["capture_cpu"] > 0.0, "{:?}", turn.figures);
    let (notebook, html) = report(&alone);
    for said in ["95 % interval", "labelled alike, nothing done (control)", "SIGSTOP", "Recording takes"] {
        assert!(notebook.contains(said), "{said:?} is missing in:\n{notebook}");
        assert!(html.contains(said), "{said:?} is missing in the page");
    }
}

#[test]
fn what_was_finished_before_a_failure_is_kept_and_reported() {
    let alone = Alone::new();
    let case = small_redo(alone.dir(), true);
    trial::run(&options(&alone, &case, false)).expect_err("a server did not start");
    assert_eq!(turns(&alone), ["fs", "fs-again", "preload"]);
    let (notebook, _) = report(&alone);
    assert!(notebook.contains("A part of a trial"), "{notebook}");
    assert!(notebook.contains("shared_buffers"), "the server's own words are missing:\n{notebook}");
}

/// What the reference study did: `mount -t tmpfs /dev/pmem0 DIR`, and took it for persistent memory.
#[test]
fn a_tmpfs_that_was_given_a_pmem_device_is_refused_by_name() {
    let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let script = "mount -t tmpfs -o size=1m /dev/pmem0 \"$1\" || exit 77\nexec \"$2\" where \"$1\"";
    let said = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", script, "sh"])
        .arg(dir.path())
        .arg(env!("CARGO_BIN_EXE_seawall-lab"))
        .output()
        .expect("unshare");
    let error = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_ne!(said.status.code(), Some(77), "no tmpfs of our own could be mounted: {error}");
    assert_eq!(said.status.code(), Some(1), "{error}");
    for word in ["refused", "tmpfs, which is RAM", "Nothing lies on /dev/pmem0", "mkfs.ext4 /dev/pmem0"] {
        assert!(error.contains(word), "{word:?} is missing in {error}");
    }
    let honest = Command::new(env!("CARGO_BIN_EXE_seawall-lab")).arg("where").arg(dir.path()).output();
    assert!(honest.expect("seawall-lab").status.success());
}
