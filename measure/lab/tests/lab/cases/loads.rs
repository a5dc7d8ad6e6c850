//! Each load on its database, in small, its work checked.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use seawall_lab::cli::RunOptions;
use seawall_lab::trial;
use seawall_lab::trial::record::{self, Record};

use super::{one_sided, options, report, turns};
use crate::common::{Alone, SIDES};

/// A load on its database, bare, under Seawall and without syncs; its work is checked.
fn measured(load: &str, undurable: &str, database: &str) {
    let alone = Alone::new();
    // LMDB's program times no transaction.
    let is_timed = database != "LMDB";
    let text = format!(
        "name = \"small\"\ntitle = \"T\"\nquestion = \"Q\"\nseconds = 1\nmeasures = [\"throughput\", \"latency_p99\"]\n\
         controls = [\"fs\"]\n{load}\n{SIDES}\n[[configuration]]\nname = \"unsafe\"\ntitle = \"no sync\"\nrole = \"bound\"\n\
         settings = {undurable}\n"
    );
    let case = alone.dir().join("small.toml");
    fs::write(&case, text).expect("a case");
    let measured = RunOptions { rounds: Some(2), ..options(&alone, &case, false) };
    trial::run(&measured).expect("measured");
    let records = record::read(&alone.dir().join("out/lab/small.jsonl")).expect("lines");
    let turns: Vec<_> =
        records.iter().filter_map(|r| if let Record::Turn(turn) = r { Some(turn) } else { None }).collect();
    assert_eq!(turns.len(), 8);
    for turn in turns {
        let (name, figures) = (&turn.configuration, &turn.figures);
        assert!(figures["throughput"] > 0.0, "{name}: {figures:?}");
        assert_eq!(figures.get("latency_p99").is_some_and(|p99| *p99 > 0.0), is_timed, "{name}: {figures:?}");
        assert!(turn.work.commits > 0.0, "{name}");
        match name.as_str() {
            "preload" => assert!(turn.durability.ends_with("emulated"), "{}", turn.durability),
            "unsafe" => assert!(!turn.durability.starts_with("durable"), "{}", turn.durability),
            _ => assert_eq!(turn.durability, "durable"),
        }
    }
    let (notebook, _) = report(&alone);
    assert!(notebook.starts_with(&format!("# Lab notebook: {database}")), "{notebook}");
}

#[test]
fn sysbench_is_a_load_of_mariadb() {
    let load = "[sysbench]\nthreads = 2\ntables = 2\nrows = 1000\n";
    measured(load, "{ innodb-flush-log-at-trx-commit = 0, sync-binlog = 0 }", "MariaDB");
}

#[test]
fn redis_benchmark_is_a_load_of_redis() {
    measured("[redis-benchmark]\nclients = 4\npipeline = 1\n", "{ appendfsync = \"no\" }", "Redis");
}

#[test]
fn db_bench_is_a_load_of_rocksdb() {
    measured("[db-bench]\nthreads = 2\nprograms = 2\n", "{ sync = 0 }", "RocksDB");
}

#[test]
fn our_own_programs_are_loads_of_sqlite_lmdb_and_files() {
    measured("[sqlite]\nprograms = 2\n", "{ synchronous = \"off\" }", "SQLite");
    measured("[lmdb]\n", "{ sync = 0 }", "LMDB");
    measured("[files]\n", "{ sync = 0 }", "Files");
}

#[test]
fn puts_are_a_load_of_etcd_on_a_mount() {
    // As root the case is run by another user.
    let may_mount = |fuse: fs::Metadata| fuse.permissions().mode() & 0o006 == 0o006;
    if !fs::metadata("/dev/fuse").is_ok_and(may_mount) {
        eprintln!("SKIPPED: not every user may open /dev/fuse");
        return;
    }
    let alone = Alone::new();
    let case = one_sided(alone.dir(), "[etcd]\nclients = 2\n");
    let on_a_mount = "[[configuration]]\nname = \"mount\"\ntitle = \"on a mount\"\nfront = \"mount\"\n\
                      medium = \"emulated\"\npool = \"16M\"\n";
    let text = fs::read_to_string(&case).expect("a case") + on_a_mount;
    fs::write(&case, text).expect("a case");
    trial::run(&options(&alone, &case, false)).expect("measured");
    assert_eq!(turns(&alone), ["fs", "fs-again", "mount"]);
}

/// Where the lab is root, and can mount it; elsewhere the error gives the reason.
#[test]
fn data_lies_on_a_disk_that_takes_its_time_over_each_flush() {
    let alone = Alone::new();
    let load = "flush_ms = 20\n[pgbench]\ntest = \"simple-update\"\nclients = 1\nscale = 1\n";
    let case = one_sided(alone.dir(), load);
    if let Err(error) = trial::run(&options(&alone, &case, false)) {
        assert!(format!("{error:#}").contains("not finished"), "{error:#}");
        eprintln!("SKIPPED: {error:#}");
        return;
    }
    let records = record::read(&alone.dir().join("out/lab/small.jsonl")).expect("lines");
    for turn in records.iter().filter_map(|r| if let Record::Turn(turn) = r { Some(turn) } else { None }) {
        // One client waits for a flush in each transaction.
        assert!(turn.figures["throughput"] < 51.0, "{:?}", turn.figures);
    }
    let (notebook, _) = report(&alone);
    assert!(notebook.contains("takes 20 ms over each flush"), "{notebook}");
}

#[test]
fn a_tool_that_is_missing_is_named_with_its_package_before_anything_is_made() {
    let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
    for (case, words) in [
        ("mariadb", "sysbench is not installed: apt-get install sysbench"),
        ("redis", "redis-benchmark is not installed: apt-get install redis-tools"),
        ("rocksdb", "db_bench is not installed: apt-get install rocksdb-tools"),
    ] {
        let mut lab = Command::new(env!("CARGO_BIN_EXE_seawall-lab"));
        lab.args(["run", case, "--quick", "--out"]).arg(dir.path().join("out")).env("PATH", dir.path());
        let said = lab.output().expect("seawall-lab");
        let error = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(!said.status.success() && error.contains(words), "{words:?} is missing in {error}");
        assert!(!dir.path().join("out/work").exists(), "{error}");
    }
}
