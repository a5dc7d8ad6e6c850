//! Case files with one mistake each: the error names file, line, key, and what would be right.

use super::{Case, CaseError, Role, builtin, parse};

const GOOD: &str = r#"name = "mine"
title = "Mine"
question = "Is it faster?"
seconds = 5
measures = ["throughput"]
controls = ["fs"]

[pgbench]
test = "simple-update"
clients = 4
scale = 2

[[configuration]]
name = "fs"
title = "the file system"
role = "baseline"

[[configuration]]
name = "log"
title = "a log"
front = "preload"
medium = "emulated"
pool = "64M"
settings = { full_page_writes = false, wal_buffers = "4MB", max_connections = 20 }
"#;

fn planted(right: &str, wrong: &str) -> CaseError {
    assert!(GOOD.contains(right), "{right}");
    parse("mine.toml", &GOOD.replace(right, wrong)).expect_err(wrong)
}

#[test]
fn the_cases_of_the_lab_are_cases() {
    for found in builtin::all().expect("no mistake in them") {
        let case = &found.case;
        assert!(*case.rounds.get_ref() >= 3, "{}: fewer rounds than a result takes", case.name());
        assert_eq!(case.baseline().role, Role::Baseline);
        let again = case.expanded().into_iter().filter(|c| c.again_of.is_some()).count();
        assert_eq!(again, case.controls.len(), "{}", case.name());
        assert!(again > 0 || case.slices.is_some(), "{}: nothing says what noise is", case.name());
    }
}

#[test]
fn a_case_is_what_its_file_says() {
    let case: Case = parse("mine.toml", GOOD).expect("a case");
    let names: Vec<_> = case.expanded().into_iter().map(|c| c.name).collect();
    assert_eq!(names, ["fs", "fs-again", "log"]);
    let log = &case.configurations[1].get_ref();
    assert_eq!(log.setting(&case.settings, "full_page_writes").as_deref(), Some("off"));
    assert_eq!(log.setting(&case.settings, "max_connections").as_deref(), Some("20"));
    assert_eq!(*case.rounds.get_ref(), 3);
}

#[test]
fn a_mistake_is_told_with_its_place_and_what_is_allowed() {
    let cases: [(&str, &str, usize, &[&str]); 14] = [
        ("seconds = 5", "seconds = \"5\"", 4, &["string", "u64"]),
        ("seconds = 5", "seconds = 0", 4, &["seconds", "1 to 3600"]),
        ("seconds = 5", "sekonds = 5", 4, &["sekonds", "seconds"]),
        ("[\"throughput\"]", "[\"speed\"]", 5, &["speed", "throughput", "latency_p99"]),
        ("controls = [\"fs\"]", "controls = [\"xfs\"]", 6, &["xfs", "`fs`", "`log`"]),
        ("controls = [\"fs\"]", "controls = [\"log\"]", 6, &["baseline", "fs"]),
        ("\"simple-update\"", "\"insert-only\"", 9, &["insert-only", "simple-update", "tpcb"]),
        ("role = \"baseline\"", "role = \"base\"", 16, &["base", "`baseline`", "`bound`"]),
        (
            "medium = \"emulated\"",
            "medium = \"pmem\"",
            22,
            &["pmem", "`emulated`, `file`, `dax`, `block`, `replicated`"],
        ),
        ("pool = \"64M\"", "pool = \"64 apples\"", 18, &["pool", "256M"]),
        ("pool = \"64M\"", "keep = true", 18, &["keep", "`cache`"]),
        ("pool = \"64M\"", "cache = \"64M\"\nprewarm = true", 18, &["prewarm", "`memory`"]),
        ("pool = \"64M\"", "poole = \"64M\"", 23, &["poole", "`pool`"]),
        ("title = \"Mine\"", "title = Mine", 2, &[]),
    ];
    for (right, wrong, line, words) in cases {
        let said = planted(right, wrong);
        let text = said.to_string();
        assert_eq!(said.line, Some(line), "{wrong}: {text}");
        assert!(text.starts_with(&format!("mine.toml, line {line}: ")), "{text}");
        for word in words {
            assert!(text.contains(word), "{wrong}: {word} is missing in {text}");
        }
    }
}

#[test]
fn what_does_not_fit_together_is_told() {
    let cases = [
        ("role = \"baseline\"\n", "", "baseline"),
        ("medium = \"emulated\"\n", "", "medium"),
        ("name = \"log\"", "name = \"fs\"", "two configurations"),
        ("[pgbench]\ntest = \"simple-update\"\nclients = 4\nscale = 2\n", "", "[slob], [tprocc]"),
        (
            "[pgbench]\n",
            "[tprocc]\nwarehouses = 1\nitems = 100\ncustomers = 10\nusers = 2\n[pgbench]\n",
            "only one load",
        ),
        ("[pgbench]\n", "[devices]\nwrites_per_second = 1\n[pgbench]\n", "from 50"),
        ("seconds = 5\n", "seconds = 5\nflush_ms = 1001\n", "from 0 to 1000"),
        ("pool = \"64M\"\n", "pool = \"64M\"\neatmydata = true\n", "eatmydata cannot be used with"),
        ("title = \"a log\"\n", "title = \"a log\"\nrole = \"baseline\"\n", "second baseline"),
    ];
    for (right, wrong, word) in cases {
        let said = planted(right, wrong).to_string();
        assert!(said.starts_with("mine.toml") && said.contains(word), "{word} is missing in {said}");
    }
}

#[test]
fn make_lab_is_planned_to_take_less_than_twenty_minutes() {
    let cases = builtin::of_all().expect("no mistake in them");
    let planned = builtin::planned_seconds(&cases);
    assert!(planned <= 19 * 60, "--all is planned to take {planned} s, and machines are slower than planned");
    // What is asked for by name alone runs tools that not everybody has.
    assert!(cases.iter().all(|found| found.case.load().tool().is_none()));
}

#[test]
fn slices_are_of_one_configuration_that_is_captured() {
    let text = builtin::find("capture").expect("a case").text;
    for (right, wrong, word) in [
        ("captured_every = 60\n", "", "captured_every"),
        ("measures =", "controls = [\"captured\"]\nmeasures =", "controls"),
        ("seconds = 0.5\n", "seconds = 0\n", "0.5 to 60"),
        ("below_percent = 1", "below_percent = 100", "below_percent"),
    ] {
        assert!(text.contains(right), "{right}");
        let said = parse("capture.toml", &text.replacen(right, wrong, 1)).expect_err(wrong).to_string();
        assert!(said.contains(word) && said.contains("line "), "{word} is missing in {said}");
    }
}

#[test]
fn an_installed_tool_is_a_load_and_its_numbers_are_checked() {
    for (load, words) in [
        ("[sysbench]\nthreads = 0\ntables = 1\nrows = 100\n", "[sysbench]: threads from 1"),
        (
            "[redis-benchmark]\nclients = 1\npipeline = 0\n",
            "[redis-benchmark]: clients from 1 to 1000, pipeline from 1",
        ),
        ("[db-bench]\nthreads = 100\n", "[db-bench]: threads"),
        ("[sqlite]\nprograms = 0\n", "[sqlite]: programs from 1"),
        ("[etcd]\nclients = 4\n", "etcd makes its system calls itself"),
        ("[db-bench]\nthreads = 1\n[crash]\nafter_commits = 1\nwatch_seconds = 1\n", "timed by pgbench"),
    ] {
        let said = planted("[pgbench]\ntest = \"simple-update\"\nclients = 4\nscale = 2\n", load).to_string();
        assert!(said.contains(words), "{words} is missing in {said}");
    }
    let text = GOOD
        .replace("[pgbench]\ntest = \"simple-update\"\nclients = 4\nscale = 2\n", "[db-bench]\nthreads = 1\n")
        .replace("pool = \"64M\"", "pool = \"64M\"\nwal = \"own-file-system\"");
    let said = parse("mine.toml", &text).expect_err("a log of its own").to_string();
    assert!(said.contains("not for RocksDB"), "{said}");
}

#[test]
fn a_name_that_is_none_lists_those_there_are() {
    let said = builtin::find("rodeo").err().expect("no such case").to_string();
    assert!(said.contains("redo, commits, tprocc, restart") && said.contains("./rodeo.toml"), "{said}");
    assert!(builtin::find("/nowhere/rodeo.toml").is_err());
}
