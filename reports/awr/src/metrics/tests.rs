use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use super::*;
use crate::disks::Disk;

fn status(files: &[(&str, u64)]) -> Status {
    let file = |(id, writes): &(&str, u64)| {
        serde_json::json!({ "id": id, "preset": "postgres", "path": "/d/pg_wal/x", "tracked": true, "live": false, "flags": [],
            "last_lsn": 0, "watermark": 0, "absorbed": 1, "real_syncs": 0, "writes": writes, "bytes": 8192,
            "untracked_writes": 0, "atomic": false, "left": 0 })
    };
    let event = serde_json::json!({ "name": "log file sync", "stage": "engine", "count": 7, "mean_ns": 1, "p50_ns": 1, "p99_ns": 1,
        "p99.9_ns": 1, "max_ns": 1, "sum_ns": 9000, "buckets": [[1024, 4], [1280, 2], [4096, 1]] });
    let status = serde_json::json!({ "medium": "emulated (RAM)", "medium_name": "emulated", "because": "", "pool": "/p", "uuid": "",
        "size": 1, "segment_bytes": 1, "segments": 10, "segments_free": 4, "backlog_bytes": 0, "backlog_files": 0, "daemon_pid": 1,
        "log": "", "watch": "", "clients": [], "refused": 0, "requests": 0, "guards": 0, "roots": [],
        "files": files.iter().map(file).collect::<Vec<_>>(), "events": [event], "epoch": "e" });
    serde_json::from_value(status).expect("a status")
}

fn cached(zone: &str, files: &[(&str, u64)]) -> Status {
    let file = |(id, hits): &(&str, u64)| serde_json::json!({ "id": id, "path": "/d/base/5/1", "class": "data file", "hits": hits, "misses": 64, "not_served": null });
    let advised = serde_json::json!({ "percent": 50, "size": 1, "hit_percent": 25.0, "reads": 4, "hits": 1 });
    let cache = serde_json::json!({ "path": "/p.cache", "medium_name": "pmem", "size": 4096, "block_bytes": 8192, "blocks": 9,
        "blocks_used": 5, "files": files.len(), "files_max": 64, "files_not_served": 0, "hits": 7, "misses": 8, "admitted": 5,
        "failures": 0, "off": null, "advisory": [advised], "zone": zone,
        "by_file": files.iter().map(file).collect::<Vec<_>>() });
    Status { cache: Some(serde_json::from_value(cache).expect("a cache")), ..status(&[]) }
}

#[test]
fn the_block_cache_is_exported_and_its_files_take_nothing_away() {
    let mut exporter = Exporter::new(None, None);
    for (zone, files, total) in [
        ("a", vec![("1.1", 640), ("2.1", 64)], 704),
        ("a", vec![("1.1", 704)], 768),
        ("b", vec![("1.1", 1000)], 1768),
    ] {
        let mut out = Exposition::default();
        exporter.log(&mut out, &cached(zone, &files));
        let text = out.text();
        let hits = "seawall_cache_directory_hits_total{directory=\"/d/base/5\",class=\"data file\"}";
        for line in [
            &format!("{hits} {total}\n"),
            "seawall_cache_on{medium=\"pmem\"} 1\n",
            "seawall_cache_used_bytes 40960\n",
            "seawall_cache_hits_total 7\n",
            "seawall_cache_advised_hit_ratio{times=\"0.5\"} 0.25\n",
        ] {
            assert!(text.contains(line), "no {line:?} in\n{text}");
        }
    }
    let mut out = Exposition::default();
    let without = Status { without_cache: Some("no room".into()), ..status(&[]) };
    exporter.log(&mut out, &without);
    assert!(out.text().contains("seawall_cache_on 0\n"), "{}", out.text());
    assert!(!exposed(&mut Exporter::new(None, None), &[]).contains("seawall_cache"), "none is wanted");
}

#[test]
fn each_disk_is_exported_by_its_image() {
    let find: Find =
        |_| vec![Disk { image: "/vm/a.img".into(), bytes: 4096, queues: 2, counts: [1, 2, 3, 4, 5, 6] }];
    let mut out = Exposition::default();
    Exporter::new(None, None).with_disks(find).log(&mut out, &status(&[]));
    let text = out.text();
    for line in [
        "seawall_disk_queues{image=\"/vm/a.img\"} 2\n",
        "seawall_disk_flushes_total{image=\"/vm/a.img\"} 5\n",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
}

fn kept() -> Status {
    let keeper = |address: &str, role: &str| {
        serde_json::json!({ "address": address, "role": role, "witness": false, "affirms": false, "behind": 3, "behind_bytes": 900,
            "hardened": 0, "sent_bytes": 4096, "reconnects": 2, "answers": 7, "mean_us": 1.0, "p50_us": 1.0, "p99_us": 1.0,
            "longest_us": 1.0, "sum_ns": 9000, "buckets": [[1024, 4], [1280, 2], [4096, 1]], "trouble": "" })
    };
    let kept = serde_json::json!({ "log": "l", "acks": 2, "counting": 1, "epoch": 4, "last": 9, "survives": "the loss of \"this\" host",
        "over": null, "short_s": 1.5, "short_times": 1, "alone_total_s": 0.5, "keepers": [keeper("a:1", "counts"), keeper("b:1", "down")] });
    Status { kept: Some(serde_json::from_value(kept).expect("keepers")), ..status(&[]) }
}

#[test]
fn keepers_are_exported_each_by_its_address() {
    let mut out = Exposition::default();
    Exporter::new(None, None).log(&mut out, &kept());
    let text = out.text();
    for line in [
        "seawall_keepers_info{survives=\"the loss of \\\"this\\\" host\"} 1\n",
        "seawall_keepers_needed 2\n",
        "seawall_keepers_counting 1\n",
        "seawall_keepers_failed 0\n",
        "seawall_keepers_alone 0\n",
        "seawall_keepers_short_seconds_total 1.5\n",
        "seawall_keepers_short_total 1\n",
        "seawall_keepers_alone_seconds_total 0.5\n",
        "seawall_keeper_counts{keeper=\"a:1\"} 1\n",
        "seawall_keeper_counts{keeper=\"b:1\"} 0\n",
        "seawall_keeper_behind_batches{keeper=\"b:1\"} 3\n",
        "seawall_keeper_behind_bytes{keeper=\"b:1\"} 900\n",
        "seawall_keeper_sent_bytes_total{keeper=\"a:1\"} 4096\n",
        "seawall_keeper_reconnects_total{keeper=\"a:1\"} 2\n",
        "seawall_keeper_round_trip_seconds_bucket{keeper=\"a:1\",le=\"0.000002048\"} 6\n",
        "seawall_keeper_round_trip_seconds_count{keeper=\"b:1\"} 7\n",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    assert!(!exposed(&mut Exporter::new(None, None), &[]).contains("seawall_keeper"), "there are none");
}

#[test]
fn a_copy_that_is_lost_and_its_rebuild_are_exported() {
    for (state, is_shown) in [("preparing", true), ("copying", true), ("done", false), ("failed", false)] {
        let copy = |path: &str, written: bool| serde_json::json!({ "path": path, "written": written });
        let rebuild =
            serde_json::json!({ "path": "/b", "state": state, "done": 30, "bytes": 120, "error": null });
        let mirror = serde_json::json!({ "copies": [copy("/a", true), copy("/b", false)], "error": 5, "rebuild": rebuild });
        let journal = serde_json::json!({ "size": 1, "device_writes": 1, "device_bytes": 1, "data_bytes": 1, "waits": 1,
            "leads": 1, "syncs_per_write": 1.0, "failed": 0, "stopped": null, "mirror": mirror });
        let journal = Some(serde_json::from_value(journal).expect("a journal"));
        let mut out = Exposition::default();
        Exporter::new(None, None).log(&mut out, &Status { journal, ..status(&[]) });
        let text = out.text();
        assert!(text.contains("seawall_device_copies 1\n"), "{text}");
        assert_eq!(text.contains("seawall_device_rebuild_ratio 0.25\n"), is_shown, "{state}: {text}");
    }
}

fn exposed(exporter: &mut Exporter, files: &[(&str, u64)]) -> String {
    let mut out = Exposition::default();
    exporter.log(&mut out, &status(files));
    out.text()
}

#[test]
fn a_file_that_goes_takes_nothing_away() {
    let mut exporter = Exporter::new(None, None);
    for (files, total) in
        [(vec![("1.1", 5), ("2.1", 3)], 8), (vec![("1.1", 7)], 10), (vec![("1.1", 7), ("2.2", 1)], 11)]
    {
        let text = exposed(&mut exporter, &files);
        let line = format!("seawall_writes_total{{preset=\"postgres\",directory=\"/d/pg_wal\"}} {total}\n");
        assert!(text.contains(&line), "{text}");
    }
}

#[test]
fn a_histogram_is_cumulative_and_ends_with_all() {
    let text = exposed(&mut Exporter::new(None, None), &[]);
    let buckets: Vec<_> = text.lines().filter(|l| l.starts_with("seawall_wait_seconds_bucket")).collect();
    assert_eq!(buckets.len(), 3, "{text}");
    assert!(buckets[0].contains("le=\"0.000002048\"") && buckets[0].ends_with(" 6"), "{}", buckets[0]);
    assert!(buckets[2].contains("+Inf") && buckets[2].ends_with(" 7"), "{}", buckets[2]);
    assert!(text.contains("seawall_info{medium=\"emulated\",pool=\"/p\"} 1"));
}

#[test]
fn the_dashboard_asks_for_nothing_that_is_not_exported() {
    let dashboard = include_str!("../../../../packaging/grafana/seawall.json");
    let value: serde_json::Value = serde_json::from_str(dashboard).expect("JSON");
    let text = exposed(&mut Exporter::new(None, None), &[("1.1", 1)]);
    let mut out = Exposition::default();
    Exporter::new(None, None).log(&mut out, &cached("a", &[("1.1", 640)]));
    Exporter::new(None, None).log(&mut out, &kept());
    let text = text + &out.text();
    let panels = value["panels"].as_array().expect("panels");
    let asked = panels
        .iter()
        .flat_map(|p| p["targets"].as_array().expect("targets"))
        .map(|t| t["expr"].as_str().expect("a question"));
    let words = asked.flat_map(|expr| expr.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    let mut names: Vec<_> =
        words.filter(|word| word.starts_with("seawall_") && *word != "seawall_up").collect();
    names.dedup();
    assert!(names.len() > 5, "{names:?}");
    for name in names {
        assert!(text.contains(&format!("\n{name}")) || text.starts_with(name), "{name} is not exported");
    }
}

#[test]
fn the_server_has_one_page() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || serve(&listener, &mut Exporter::new(Some("/nowhere/x.pool".into()), None)));
    let get = |path: &str| {
        let mut stream = TcpStream::connect(address).expect("connected");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").expect("asked");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer
    };
    let page = get("/metrics");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("seawall_up 0"), "{page}");
    assert!(get("/").starts_with("HTTP/1.1 404"));
}

/// What `promtool check metrics` complains of.
#[test]
fn metrics_are_named_as_prometheus_wants_them() {
    let mut out = Exposition::default();
    let exporter = &mut Exporter::new(None, None);
    let of_files = status(&[("1.1", 1), ("2.1", 2)]);
    let (cache, kept) = (cached("z", &[("1.1", 1)]).cache, kept().kept);
    exporter.log(&mut out, &Status { cache, kept, ..of_files });
    let mut snapshot = Snapshot::default();
    let reading = crate::model::Reading::new("mariadb status", "", "e").counter("Com_admin-x", 1.0);
    snapshot.add("mariadb status", true, vec![reading]);
    readings(&mut out, &snapshot);
    let text = out.text();
    let mut described: Vec<&str> = Vec::new();
    let mut kind = "";
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..2] {
            ["#", "HELP"] => {
                assert!(words.len() > 3 && !described.contains(&words[2]), "{line}");
                described.push(words[2]);
            }
            ["#", "TYPE"] => {
                assert_eq!(described.last(), Some(&words[2]), "{line}");
                kind = words[3];
            }
            _ => {
                let name = words[0].split('{').next().unwrap_or("");
                let metric = described.last().copied().unwrap_or("");
                assert!(name == metric || kind == "histogram" && name.starts_with(metric), "{line}");
                let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                assert!(name.chars().all(plain), "{line}");
                let ours = name.starts_with("seawall_");
                assert_eq!(ours && kind == "counter", ours && name.ends_with("_total"), "{line}");
                let is_base = |word: &str| !["ms", "us", "ns", "mb", "percent"].contains(&word);
                assert!(!ours || name.split('_').all(is_base), "{line}");
            }
        }
    }
    assert!(described.contains(&"mariadb_status_com_admin_x"), "{described:?}");
}
