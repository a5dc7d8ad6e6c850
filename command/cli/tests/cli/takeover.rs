//! A log is taken over on another host. The hosts are namespaces of their own that share the data's disk.

use crate::common;
use std::fs;
use std::process::Stdio;

use crate::common::hosts::Host;
use crate::common::pair::{Scene, gets_an_error};
use crate::common::{Writer, lot, rounds, wait_for};

// Holds: admin/KEEPERS#what-is-tested
#[test]
fn another_host_takes_the_log_over_and_the_former_one_writes_nothing_more() {
    let Some(s) = Scene::new(2) else { return };
    let mut writer = s.writer(&s.a, "a");
    writer.write(20);
    // Looking changes nothing.
    let seen = s.takeover(&s.b, "b", &["--dry-run", "--json"]).json();
    assert_eq!(
        (&seen["found"]["holder"]["host"], &seen["found"]["is_here"]),
        (&"db-a".into(), &false.into())
    );
    assert!(seen["found"]["heard"].is_u64(), "{seen}");
    s.b.run(&["test", "!", "-e", &s.pool("b")]).succeeds();
    writer.write(1);

    s.a.unplug();
    let done = s.takeover(&s.b, "b", &["--json"]).json();
    assert_eq!((&done["done"], &done["takeover"]["recovery"]["replayed"]), (&true.into(), &true.into()));
    assert_eq!((&done["from"]["host"], &done["takeover"]["was_here"]), (&"db-a".into(), &false.into()));
    assert_eq!(Writer::found(&s.place), 21);
    assert!(!s.place.guard().exists());
    // Once more: nothing is left to do.
    let again = s.takeover(&s.b, "b", &["--json"]).json();
    assert_eq!(again["takeover"]["recovery"]["live"], 0, "{again}");

    fs::remove_file(s.place.file("x-wal")).expect("the former host's");
    let mut other = s.writer(&s.b, "b");
    other.write(5);
    let served = s.takeover(&s.b, "b", &[]);
    assert!(served.succeeds().out.contains("a daemon serves it"), "{}", served.out);

    // The former host comes back, and does not know.
    s.a.plug();
    wait_for("the former host to learn of it", || {
        let kept = &s.a.status(&s.pool("a"))["kept"];
        kept["over"].is_string() && kept["taken_by"]["host"] == "db-b"
    });
    let status = s.a.status(&s.pool("a"));
    let log = status["log"].as_str().expect("a path").to_owned();
    gets_an_error(writer).says(&["Input/output error"]);
    wait_for("its daemon to end", || s.a.daemon(&s.pool("a")).is_none());
    let log = s.a.run(&["cat", &log]).out;
    assert!(log.contains("NO COMMITS ANY MORE: host db-b since") && log.contains("(EIO)"), "{log}");
    assert!(s.place.guard().exists(), "it is the other host's");

    // Nor does it go on when it is started again, with what it has in memory and without.
    let (pool, data) = (s.pool("a"), s.data());
    let start = ["run", "--pool", &pool, "--preset", "sqlite", "--data", &data, "--", "true"];
    for _ in 0..2 {
        let refused = s.a.seawall(&start);
        refused.fails(125, &["db-b since", "in turn", "seawall takeover", "othing was replayed"]);
        s.a.seawall(&["recover", "--replay", "--pool", &pool]).fails(1, &["db-b since", "seawall takeover"]);
        s.a.forget();
    }
    assert!(s.place.guard().exists());
    other.write(5);
    other.finish().succeeds();
    assert_eq!(Writer::found(&s.place), 10);
    // Back again.
    let back = s.takeover(&s.a, "a", &["--json"]).json();
    assert_eq!(back["from"]["host"], "db-b");
    s.a.seawall(&start).succeeds();
    s.b.seawall(&["recover", "--pool", &s.pool("b")]).fails(1, &["db-a since"]);
}

// Holds: admin/KEEPERS#what-is-tested
#[test]
fn a_former_host_that_slept_gets_nothing_confirmed() {
    let Some(s) = Scene::new(2) else { return };
    let mut writer = s.writer(&s.a, "a");
    writer.write(10);
    let daemon = s.a.daemon(&s.pool("a")).expect("a daemon");
    s.a.signal(daemon, "STOP");
    s.takeover(&s.b, "b", &[]).succeeds();
    assert_eq!(Writer::found(&s.place), 10);
    s.a.signal(daemon, "CONT");
    gets_an_error(writer).says(&["Input/output error"]);
    assert!(!s.place.guard().exists(), "the former host raises none");
}

/// On a volume that both see, the guard is the one that the other host's database has raised.
#[test]
fn a_former_host_that_has_nothing_left_lowers_no_guard() {
    let Some(s) = Scene::new(2) else { return };
    let mut writer = s.writer(&s.a, "a");
    writer.write(5);
    s.a.seawall(&["drain", "--pool", &s.pool("a")]).succeeds();
    s.a.unplug();
    s.takeover(&s.b, "b", &[]).succeeds();
    let mut other = s.writer(&s.b, "b");
    other.write(3);
    wait_for("its guard", || s.place.guard().exists());
    s.a.plug();
    writer.finish();
    wait_for("its daemon to end", || s.a.daemon(&s.pool("a")).is_none());
    assert!(s.place.guard().exists(), "it is the other host's");
    other.write(3);
    other.finish().succeeds();
    assert!(!s.place.guard().exists());
}

// Holds: admin/KEEPERS#what-is-tested
#[test]
fn where_it_cannot_be_right_it_is_refused_and_nothing_is_changed() {
    let Some(mut s) = Scene::new(2) else { return };
    let mut writer = s.writer(&s.a, "a");
    writer.write(5);
    let copy = tempfile::tempdir_in("/var/tmp").expect("a directory");
    fs::copy(s.place.file("x-wal"), copy.path().join("x-wal")).expect("copied");
    let (pool, copied, keeper) =
        (s.pool("b"), copy.path().display().to_string(), s.keepers[0].address.clone());
    let of = |more: &[&str]| s.b.seawall(&[&["takeover", &pool][..], more].concat());
    of(&["--keeper", &keeper, "--data", &copied])
        .fails(5, &["is not the log's directory", "file by file", "nothing was changed"]);
    of(&[]).fails(1, &["name a keeper of the log with --keeper"]);
    of(&["--keeper", &keeper, "--log", &"0".repeat(32)]).fails(1, &["keeps no such log", "keeper status"]);
    of(&["--keeper", "169.254.77.1:7700"]).fails(3, &["169.254.77.1:7700"]);
    let other = s.place.file("other.log").display().to_string();
    s.a.seawall(&["init", &other, "--size", "16M", "--keeper", &keeper]).succeeds();
    of(&["--keeper", &keeper])
        .fails(1, &["several logs are kept there: choose with --log", "host db-a since"]);
    s.a.seawall(&["takeover", &s.place.file("x-wal").display().to_string(), "--keeper", &keeper])
        .fails(1, &["is not a log that keepers keep"]);
    // One keeper of three is not enough to know what two confirmed.
    s.keepers[0].kill();
    s.keepers[2].kill();
    let refused = s.takeover(&s.b, "b", &["--json"]);
    refused.fails(3, &["1 of 3 keepers answered", "2 are needed"]);
    let json: serde_json::Value = serde_json::from_str(&refused.out).expect("JSON");
    assert_eq!((&json["code"], &json["found"]["keepers"][0]["kept"]), (&3.into(), &false.into()));
    s.b.run(&["test", "!", "-e", &s.pool("b")]).succeeds();
    s.keepers[0].again_on(Some(&s.on[0]));
    // The former writer never heard of any of this.
    writer.write(5);
    writer.finish().succeeds();
    assert_eq!(Writer::found(&s.place), 10);
}

// Holds: admin/KEEPERS#what-is-tested
#[test]
fn of_two_at_once_one_takes_it_over_and_the_other_is_told() {
    let Some(mut s) = Scene::new(2) else { return };
    let c = s.network.host("db-c");
    let mut writer = s.writer(&s.a, "a");
    writer.write(10);
    s.a.forget();
    let _ = writer.run.wait();
    for round in 0..4 {
        let (pools, data, keeper) = ([s.pool("b"), s.pool("c")], s.data(), s.keepers[1].address.clone());
        let start = |host: &Host, pool: &str| {
            let mut command = host
                .seawall_command("/", &["takeover", pool, "--keeper", &keeper, "--data", &data, "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
        };
        let both = [start(&s.b, &pools[0]), start(&c, &pools[1])];
        let said = both.map(|child| common::Said::from(child.wait_with_output().expect("it ends")));
        let won: Vec<usize> = (0..2).filter(|i| said[*i].code == Some(0)).collect();
        let tell = || format!("{round}: {} {}\n{} {}", said[0].out, said[0].err, said[1].out, said[1].err);
        match won.as_slice() {
            [winner] => {
                let other = ["host db-b since", "host db-c since"][*winner];
                assert!([4, 7].contains(&said[1 - winner].code.expect("a code")), "{}", tell());
                if said[1 - winner].code == Some(4) {
                    said[1 - winner].says(&["took this log over at the same time", other]);
                }
            }
            // One after the other.
            [_, _] => {
                let turn = |i: usize| said[i].json()["takeover"]["turn"].as_u64().expect("a turn");
                assert_ne!(turn(0), turn(1), "{}", tell());
            }
            _ => panic!("{}", tell()),
        }
        assert_eq!(Writer::found(&s.place), 10);
    }
}

// Holds: admin/KEEPERS#what-is-tested
#[test]
fn a_takeover_that_is_killed_anywhere_is_made_again() {
    let Some(s) = Scene::new(2) else { return };
    let mut writer = s.writer(&s.a, "a");
    writer.write(20);
    s.a.forget();
    let _ = writer.run.wait();
    for milliseconds in [0, 5, 10, 15, 20, 30, 40, 60, 80, 120, 160] {
        s.lose_page_cache(20);
        let (pool, data, keeper) = (s.pool("b"), s.data(), s.keepers[1].address.clone());
        let mut command =
            s.b.seawall_command("/", &["takeover", &pool, "--keeper", &keeper, "--data", &data]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        s.b.end_processes();
        child.wait().expect("reaped");
        if s.b.run(&["sh", "-c", "ls /dev/shm/*.takeover"]).code == Some(0) {
            let start = ["run", "--pool", &pool, "--preset", "sqlite", "--data", &data, "--", "true"];
            s.b.seawall(&start)
                .fails(125, &["a takeover of this log was interrupted", "run `seawall takeover` again"]);
        } else if !s.place.guard().exists() {
            // It had ended well, and the log is closed: what is lost now is nobody's.
            break;
        }
    }
    s.takeover(&s.b, "b", &[]).succeeds();
    if s.place.guard().exists() {
        panic!("the guard is up");
    }
}

// Holds: admin/KEEPERS#what-is-tested
#[test]
fn a_volume_that_is_mounted_elsewhere_is_found_there() {
    let Some(s) = Scene::new(2) else { return };
    let mut writer = s.writer(&s.a, "a");
    writer.write(12);
    s.a.forget();
    let _ = writer.run.wait();
    s.lose_page_cache(12);
    let there = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let there = there.path().display().to_string();
    s.b.with_all_rights(&["mount", "--bind", &s.data(), &there]).succeeds();
    let (pool, keeper) = (s.pool("b"), s.keepers[2].address.clone());
    let done = s.b.seawall(&["takeover", &pool, "--keeper", &keeper, "--data", &there, "--json"]).json();
    assert_eq!(done["found"]["directories"][0]["here"], there.as_str());
    let file = done["takeover"]["recovery"]["files"][0].as_str().expect("a file").to_owned();
    assert!(file.starts_with(&there), "{file}");
    assert_eq!(Writer::found(&s.place), 12);
    assert!(!s.place.guard().exists());
}

/// The campaign: SEAWALL_TAKEOVER_ROUNDS says how many. Each time the database's host is lost in one of three ways, often a
/// keeper with it; the other host takes the log over, and the former one comes back.
// Holds: admin/KEEPERS#what-is-tested
#[test]
fn whoever_is_lost_no_commit_is_and_never_two_write() {
    let Some(mut s) = Scene::new(2) else { return };
    let rounds = rounds("SEAWALL_TAKEOVER_ROUNDS");
    let (mut commits, mut caches_lost) = (0, 0);
    s.takeover(&s.a, "a", &[]).succeeds();
    for round in 0..rounds {
        let names = if round % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
        let _ = fs::remove_file(s.place.file("x-wal"));
        let blocks = 5 + lot(round, 1, 20);
        let keeper = lot(round, 2, 4) as usize;
        let (from, to) = if round % 2 == 0 { (&s.a, &s.b) } else { (&s.b, &s.a) };
        let mut writer = s.writer(from, names[0]);
        writer.write(blocks / 2);
        if keeper < 3 && lot(round, 3, 2) == 0 {
            s.keepers[keeper].kill();
        }
        writer.write(blocks - blocks / 2);
        if keeper < 3 && lot(round, 3, 2) != 0 {
            s.on[keeper].unplug();
        }
        let daemon = from.daemon(&s.pool(names[0])).expect("a daemon");
        let way = lot(round, 4, 3);
        match way {
            0 => from.forget(),
            1 => from.unplug(),
            _ => from.signal(daemon, "STOP"),
        }
        // Where the others still run they see the same pages.
        caches_lost += u64::from(way == 0 && s.lose_page_cache(blocks as usize));
        let said = to.seawall(
            &{
                let (pool, data) = (s.pool(names[1]), s.data());
                let mut words = vec!["takeover".to_owned(), pool, "--data".into(), data];
                s.keepers.iter().for_each(|keeper| words.extend(["--keeper".into(), keeper.address.clone()]));
                words
            }
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>(),
        );
        assert_eq!(said.code, Some(0), "round {round}, way {way}: {}", said.err);
        assert_eq!(Writer::found(&s.place) as u64, blocks, "round {round}, way {way}, keeper {keeper}");
        commits += blocks;
        match way {
            0 => {}
            1 => from.plug(),
            _ => from.signal(daemon, "CONT"),
        }
        let said = gets_an_error(writer);
        assert_ne!(said.code, Some(0), "round {round}, way {way}: {}", said.err);
        from.forget();
        if keeper < 3 && lot(round, 3, 2) == 0 {
            s.keepers[keeper].again_on(Some(&s.on[keeper]));
        } else if keeper < 3 {
            s.on[keeper].plug();
        }
        // Failed writes may lie behind, in the pages that all hosts share here; confirmed ones are as they were.
        let bytes = fs::read(s.place.file("x-wal")).expect("the file");
        let confirmed = bytes.chunks(4096).take(blocks as usize).zip(1u8..);
        assert!(confirmed.clone().count() as u64 == blocks, "round {round}");
        assert!(
            confirmed.into_iter().all(|(block, n)| block == [n; 4096]),
            "round {round}: the former host wrote"
        );
    }
    println!("{rounds} takeovers, {commits} commits, none lost; {caches_lost} times with the page cache");
}
