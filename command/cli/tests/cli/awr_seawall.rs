//! What Seawall itself measured, in snapshots and reports; the label of the medium.

use crate::common;
use crate::common::{Place, SEAWALL, has};

/// Two snapshots with synced writes in between, all of it under one daemon.
fn recorded(place: &Place) -> String {
    // Not in the managed directory: a repository is an SQLite database, too.
    let repo = place.ram("snapshots.db");
    let snap = format!("{SEAWALL} snap --pool {} --repo {repo}", place.pool());
    let write = "dd if=/dev/zero of=x-wal bs=4096 count=20 oflag=dsync conv=notrunc status=none";
    // The first sync of a new file is real; those behind it are not.
    let script = format!("{write} && {snap} && {write} && {write} && {snap}");
    place.run(&["sh", "-c", &script]).succeeds();
    repo
}

#[test]
fn every_wait_is_counted_and_emulated_memory_is_called_so() {
    let place = Place::new();
    let repo = recorded(&place);
    let report = place.seawall(&["report", "1", "2", "--repo", &repo, "--json"]).json();
    let part = &report["period"]["seawall"];
    assert_eq!(part["medium_name"], "emulated");
    let waits = part["waits"].as_array().expect("waits");
    let sync = waits.iter().find(|w| w["name"] == "log file sync").expect("a wait");
    assert_eq!(sync["count"].as_f64(), Some(40.0), "{sync}");
    let buckets = sync["buckets"].as_array().expect("a histogram");
    let timed: u64 = buckets.iter().filter_map(|b| b[1].as_u64()).sum();
    assert_eq!(timed, 40, "{sync}");
    let log = part["classes"].as_array().expect("classes").iter().find(|c| c["name"] == "log file");
    assert_eq!(log.expect("a class")["counters"]["writes"].as_f64(), Some(40.0), "{log:?}");
    let of_class = part["class_waits"].as_array().expect("waits by class");
    let syncs: Vec<_> = of_class.iter().filter(|w| w["name"] == "log file sync").collect();
    assert_eq!((syncs.len(), syncs[0]["class"].as_str()), (1, Some("log file")), "{syncs:?}");
    assert_eq!(syncs[0]["count"].as_f64(), Some(40.0), "{syncs:?}");
    for output in [place.seawall(&["report", "1", "2", "--repo", &repo]).out, html(&place, &repo)] {
        assert!(output.contains("The log's medium is emulated"), "{output}");
        assert!(output.contains("survives a crash of the database"), "{output}");
    }
}

fn html(place: &Place, repo: &str) -> String {
    let path = place.file("report.html");
    place.seawall(&["report", "1", "2", "--repo", repo, "--html", &path.display().to_string()]).succeeds();
    let page = std::fs::read_to_string(path).expect("the page");
    assert!(page.contains("<svg") && page.contains("log file sync"), "the distribution is drawn");
    page.replace("&#39;", "'")
}

/// A database that is read through the cache, then again out of it, between two snapshots.
#[test]
fn the_block_cache_is_in_snapshots_reports_and_what_is_seen_now() {
    if !has("sqlite3") {
        return;
    }
    let place = Place::new();
    let repo = place.ram("snapshots.db");
    let (pool, mut run) = (place.pool(), place.command(&["run", "--cache", "64M", "--pool", place.pool()]));
    let script = format!(
        r#"
        set -e
        sqlite3 x.db "pragma page_size = 8192; create table t (a integer primary key, b, c);
            with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
            insert into t select i, hex(randomblob(80)), 1 from n; create index x on t (b);" > said
        {SEAWALL} snap --pool {pool} --repo {repo} > said
        # In the index' order: the kernel reads ahead in the table as little as can be.
        for round in 1 2 3 4 5 6; do
            sync x.db; dd if=x.db iflag=nocache count=0 status=none
            sqlite3 x.db "pragma cache_size = 20; select sum(c) from t indexed by x where b > ''" > said
        done
        {SEAWALL} snap --pool {pool} --repo {repo} > said
        {SEAWALL} top -n 1 --pool {pool}
        {SEAWALL} status --pool {pool}"#
    );
    std::fs::write(place.file("script"), script).expect("written");
    run.args(["--preset", "sqlite", "--data", ".", "--", "sh", "./script"]);
    let said: common::Said = run.output().expect("seawall starts").into();
    said.succeeds();
    for wanted in ["answered", "x.db", "files in the block cache", "% used"] {
        assert!(said.out.contains(wanted), "no {wanted:?} in {}", said.out);
    }
    let report = place.seawall(&["report", "1", "2", "--repo", &repo, "--json"]).json();
    let cache = &report["period"]["block_cache"];
    let number = |of: &serde_json::Value| of.as_f64().expect("a number");
    let (hits, misses) = (number(&cache["hits"]), number(&cache["misses"]));
    assert!(hits >= 1000.0 && misses >= 50.0 && number(&cache["at_end"]["blocks_used"]) >= 50.0, "{cache}");
    assert_eq!(number(&cache["at_end"]["size"]), f64::from(64 << 20));
    let files = cache["files"].as_array().expect("files");
    let file = files.iter().find(|file| file["name"].as_str().is_some_and(|name| name.ends_with("/x.db")));
    // Of one read in 64: five times the standard deviation of what that finds.
    let counted = number(&file.expect("the database's")["hits"]);
    assert!((counted - hits).abs() < 5.0 * 8.0 * hits.sqrt(), "{counted} of {hits}");
    let text = place.seawall(&["report", "1", "2", "--repo", &repo]).out;
    for wanted in ["Seawall: Block Cache", "Reads answered", "Block cache advisory", "/x.db"] {
        assert!(text.contains(wanted), "no {wanted:?} in {text}");
    }
    let compared = place.seawall(&["compare", "1", "2", "1", "2", "--repo", &repo]).out;
    assert!(compared.contains("Seawall: Block Cache") && compared.contains("Reads answered %"), "{compared}");
}

#[test]
fn a_daemon_that_went_is_a_note_and_its_counts_are_no_loss() {
    let place = Place::new();
    let repo = recorded(&place);
    place.seawall(&["stop", "--pool", place.pool()]).succeeds();
    place.seawall(&["snap", "--pool", place.pool(), "--repo", &repo]).succeeds();
    let report = place.seawall(&["report", "1", "3", "--repo", &repo, "--json"]).json();
    let warnings = report["period"]["warnings"].to_string();
    assert!(warnings.contains("no daemon serves"), "{warnings}");
    let waits = report["period"]["seawall"]["waits"].as_array().expect("waits");
    assert!(
        waits.iter().any(|w| w["name"] == "log file sync" && w["count"].as_f64() == Some(40.0)),
        "{waits:?}"
    );
}

#[test]
fn top_and_metrics_say_what_they_lack() {
    let place = Place::new();
    place.seawall(&["top", "-n", "1", "--pool", place.pool()]).fails(1, &["no daemon serves"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let metrics = ["metrics", "--pool", place.pool(), "--listen", &address];
    place.seawall(&metrics).fails(1, &["cannot listen at", "--listen"]);
    let script = format!("{SEAWALL} top -n 2 --pool {}", place.pool());
    let said = place.run(&["sh", "-c", &script]);
    said.succeeds();
    assert!(said.out.contains("emulated") && said.out.contains("log file sync"), "{}", said.out);
}
