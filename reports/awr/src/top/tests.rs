use std::collections::VecDeque;

use super::history::sparkline;
use super::*;

fn look(writes: u64, waits: u64, transactions: f64) -> Look {
    let file = serde_json::json!({ "id": "1.1", "preset": "postgres", "path": "/d/pg_wal/x", "tracked": true, "live": false, "flags": [],
        "last_lsn": 0, "watermark": 0, "absorbed": writes, "real_syncs": 0, "writes": writes, "bytes": writes * 8192,
        "untracked_writes": 0, "atomic": false, "left": 0 });
    let event = serde_json::json!({ "name": "log file sync", "stage": "engine", "count": waits, "mean_ns": 1, "p50_ns": 1, "p99_ns": 1,
        "p99.9_ns": 1, "max_ns": 1, "sum_ns": waits * 2000, "buckets": [[512, 90], [2048, waits]] });
    let status = serde_json::json!({ "medium": "emulated (RAM)", "medium_name": "emulated", "because": "", "pool": "/p", "uuid": "",
        "size": 1 << 20, "segment_bytes": 1, "segments": 10, "segments_free": 4, "backlog_bytes": 0, "backlog_files": 0, "daemon_pid": 1,
        "log": "", "watch": "", "clients": [7], "refused": 0, "requests": 0, "guards": 0,
        "roots": [{ "preset": "postgres", "policy": "tail", "path": "/d/pg_wal" }], "files": [file], "events": [event], "epoch": "e" });
    Look {
        status: serde_json::from_value(status).expect("a status"),
        transactions: Some(transactions),
        exposed: None,
        disks: Vec::new(),
    }
}

#[test]
fn a_frame_has_rates_of_the_interval_and_the_medium() {
    let text =
        frame(&look(100, 10, 50.0), &look(300, 110, 250.0), 2.0, &mut History::default(), Screen::FILE);
    for wanted in ["emulated (RAM)", "60 % of 1 MiB", "commits/s 100", "syncs/s 100", "logged 800 KiB/s"] {
        assert!(text.contains(wanted), "no {wanted:?} in\n{text}");
    }
    let row: Vec<_> =
        text.lines().find(|l| l.starts_with("log file sync")).expect("a row").split_whitespace().collect();
    // 100 new waits in 2 s, all of them in one bucket: those of before do not count.
    assert_eq!(row[3..8], ["50", "2", "µs", "2.05", "µs"], "{row:?}");
}

#[test]
fn a_frame_has_what_a_crash_would_cost() {
    let goal = seawall_daemon::RecoveryGoal { goal_ms: 1000, fixed_ms: 500, replayed: 1 << 20 };
    let with = |redo: f64, goal| Look { exposed: Some(Exposure::by(redo, goal)), ..look(1, 1, 1.0) };
    let text = |now: &Look| frame(&look(1, 1, 1.0), now, 2.0, &mut History::default(), Screen::FILE);
    let found = text(&with(f64::from(1 << 20), Some(goal)));
    assert!(found.contains("a crash now: 1.5 s of the 1 s wanted   (1 MiB of redo)"), "{found}");
    assert!(text(&with(1e6, None)).contains("of redo to replay"));
    assert!(!text(&look(1, 1, 1.0)).contains("a crash now"));
}

#[test]
fn a_frame_has_what_each_disks_guest_asked_for() {
    let with = |counts: [u64; 6]| {
        let disk = Disk { image: "/vm/db.img".into(), bytes: 1 << 30, queues: 4, counts };
        Look { disks: vec![disk], ..look(1, 1, 1.0) }
    };
    let (before, now) = (with([10, 1 << 20, 0, 0, 7, 0]), with([30, 3 << 20, 100, 8 << 20, 5, 0]));
    let text = frame(&before, &now, 2.0, &mut History::default(), Screen::FILE);
    let row = text.lines().find(|line| line.ends_with("/vm/db.img")).expect("a row");
    let row: Vec<_> = row.split_whitespace().collect();
    // The flushes were counted anew.
    assert_eq!(
        row[..10],
        ["4", "queues", "10", "1", "MiB/s", "50", "4", "MiB/s", "2.5", "/vm/db.img"],
        "{row:?}"
    );
    let without = frame(&look(1, 1, 1.0), &look(1, 1, 1.0), 2.0, &mut History::default(), Screen::FILE);
    assert!(!without.contains("flushes/s"));
}

fn cached(mut look: Look, hits: u64, misses: u64) -> Look {
    let file = serde_json::json!({ "id": "0.1", "path": "/d/base/5/16397", "class": "data file", "hits": hits, "misses": misses,
        "not_served": null });
    let cache = serde_json::json!({ "path": "/p.cache", "medium_name": "pmem", "size": 1u64 << 30, "block_bytes": 8192,
        "blocks": 1000, "blocks_used": 630, "files": 3, "files_max": 64, "files_not_served": 1, "hits": hits,
        "misses": misses, "admitted": 5, "failures": 0, "off": null, "advisory": [], "zone": "z", "by_file": [file] });
    look.status.cache = Some(serde_json::from_value(cache).expect("a cache"));
    look
}

#[test]
fn a_long_name_leaves_the_columns_where_they_are() {
    let named = |name: &str| {
        let (mut before, mut now) = (look(100, 10, 50.0), look(300, 110, 250.0));
        for look in [&mut before, &mut now] {
            look.status.events[0].name = name.into();
        }
        frame(&before, &now, 2.0, &mut History::default(), Screen { width: 80, height: 24, colour: false })
    };
    let column = |text: &str, line: &str| {
        let line = text.lines().find(|l| l.starts_with(line)).expect("a line").to_owned();
        line.chars().collect::<Vec<_>>().windows(2).position(|w| w == ['µ', 's'])
    };
    let long = named("db flash cache single block physical read");
    assert_eq!(
        column(&long, "db flash cache single … "),
        column(&named("log file sync"), "log file sync"),
        "{long}"
    );
}

#[test]
fn the_block_cache_has_a_line_and_its_busiest_files() {
    let (before, mut now) = (cached(look(0, 0, 0.0), 1000, 1000), cached(look(0, 0, 0.0), 4800, 1200));
    let text = frame(&before, &now, 2.0, &mut History::default(), Screen::FILE);
    let line = "cache 1 GiB (pmem) 63 % used   answered 95.0 %   hits/s 1,900   disk/s 100";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("1 of 3 cached files are not served now"), "{text}");
    let file = text.lines().find(|line| line.ends_with("/d/base/5/16397")).expect("a file");
    assert!(file.contains("1,900") && file.contains("95.0 %"), "{text}");
    now.status.cache.as_mut().expect("one").off = Some("it was switched off".into());
    let text = frame(&before, &now, 2.0, &mut History::default(), Screen::FILE);
    assert!(text.contains("CACHE OFF: it was switched off"), "{text}");
    now.status.cache = None;
    now.status.without_cache = Some("no room".into());
    let text = frame(&before, &now, 2.0, &mut History::default(), Screen::FILE);
    assert!(text.contains("NO BLOCK CACHE: no room"), "{text}");
    let small = Screen { width: 80, height: 24, colour: false };
    let text = frame(&before, &cached(look(0, 0, 0.0), 4800, 1200), 2.0, &mut History::default(), small);
    assert!(text.lines().all(|line| line.chars().count() <= 80) && text.contains("16397"), "{text}");
}

#[test]
fn counters_that_began_again_show_nothing_negative() {
    let text = frame(&look(300, 110, 250.0), &look(1, 2, 3.0), 1.0, &mut History::default(), Screen::FILE);
    assert!(!text.contains("-2"), "{text}");
}

#[test]
fn a_line_of_rates_is_in_relation_to_the_highest() {
    assert_eq!(sparkline(&VecDeque::from([0.0, 50.0, 100.0]), 9), "▁▅█");
    assert_eq!(sparkline(&VecDeque::from([0.0, 50.0, 100.0]), 2), "▅█");
    assert_eq!(sparkline(&VecDeque::from([0.0, 0.0]), 9), "▁▁");
}

#[test]
fn a_frame_fits_its_terminal() {
    for (width, height) in [(80, 24), (80, 10), (132, 40), (200, 50)] {
        let screen = Screen { width, height, colour: false };
        let text = frame(&look(100, 10, 50.0), &look(300, 110, 250.0), 2.0, &mut History::default(), screen);
        assert!(text.lines().count() < height, "{text}");
        text.lines().for_each(|line| assert!(line.chars().count() <= width, "{line}"));
        assert_eq!(text.contains("longest"), width >= 100, "{text}");
        assert!(height < 24 || text.contains("pg_wal"), "{text}");
    }
}

#[test]
fn colour_changes_no_letter() {
    let of = |colour| {
        let screen = Screen { width: 80, height: 24, colour };
        frame(&look(100, 10, 50.0), &look(300, 110, 250.0), 2.0, &mut History::default(), screen)
    };
    let (plain, mut coloured) = (of(false), of(true));
    assert!(!plain.contains('\x1b') && coloured.contains("\x1b[33m"), "{coloured}");
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[1;31m"] {
        coloured = coloured.replace(code, "");
    }
    assert_eq!(plain, coloured);
}

#[test]
fn keepers_have_a_line_each_and_too_few_of_them_stand_out() {
    let kept = |mut look: Look, answers: u64, counting: usize| {
        let keeper = |address: &str, role: &str| {
            serde_json::json!({ "address": address, "role": role, "witness": false, "affirms": false, "behind": 0, "hardened": 0,
                "sent_bytes": answers * 8192, "reconnects": 0, "answers": answers, "mean_us": 1.0, "longest_us": 1.0,
                "sum_ns": answers * 2000, "buckets": [[512, 90], [2048, answers]], "trouble": "" })
        };
        let kept = serde_json::json!({ "log": "l", "acks": 2, "counting": counting, "epoch": 4, "last": 9, "survives": "s",
            "over": null, "short_s": 1.5, "short_times": 1, "keepers": [keeper("10.0.0.1:7700", "counts")] });
        look.status.kept = Some(serde_json::from_value(kept).expect("keepers"));
        look
    };
    let screen = Screen { width: 100, height: 40, colour: true };
    let shown = |counting| {
        let (before, now) = (kept(look(1, 1, 1.0), 100, 2), kept(look(2, 2, 2.0), 300, counting));
        frame(&before, &now, 2.0, &mut History::default(), screen)
    };
    let text = shown(1);
    let row = text.lines().find(|line| line.starts_with("10.0.0.1:7700")).expect("a row");
    // 200 new answers in 2 s, all of them in one bucket.
    let words: Vec<_> = row.split_whitespace().collect();
    assert_eq!(words[1..6], ["100", "2.05", "µs", "2.05", "µs"], "{row}");
    assert!(
        text.contains("\u{1b}[1;31mkeepers 1 of 1 count, 2 confirm a commit   too few 1 times"),
        "{text}"
    );
    assert!(
        !frame(&look(1, 1, 1.0), &look(2, 2, 2.0), 2.0, &mut History::default(), screen).contains("keeper")
    );
}
