//! The pages of lab and demo in a real browser: everything in them, on a laptop, a telephone and paper.

#[path = "../../../../reports/awr/tests/browser/chromium.rs"]
mod chromium;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use chromium::{assert_fits, browser};
use seawall_awr::placement::Placement;
use seawall_lab::case::builtin::{self, Found};
use seawall_lab::case::{Configuration, Measure};
use seawall_lab::cli::ReportOptions;
use seawall_lab::compare::Three;
use seawall_lab::demo::{BareStart, DemoReport, KillReport, Row};
use seawall_lab::machine::Machine;
use seawall_lab::notebook;
use seawall_lab::spread::Spread;
use seawall_lab::trial::record::{DbTime, FORMAT, Record, Run, Turn, Work};
use seawall_lab::trial::slices::{Label, Slice};
use seawall_load::ledger::Verdict;

/// A turn with figures as wide as they come.
fn turn(place: &Placement, configuration: &Configuration, round: usize) -> Turn {
    let figures = Measure::ALL.map(|m| (m.key().to_owned(), 11_234.5 + 1_000.0 * round as f64));
    let waits = ["log file sync", "log file parallel write", "buffer: exclusive lock of a page", "CPU"];
    Turn {
        run: "1".into(),
        configuration: configuration.name.clone(),
        round,
        figures: figures.into(),
        work: Work { commits: 1_234_567.0, rows: 77_777_777.0, wal_bytes: 9.9e9, wal_images: 123_456.0 },
        time: DbTime { seconds: 40.0, shares: waits.map(|w| (w.to_owned(), 25.0)).into(), samples: 4000 },
        durability: "asynchronous commit loses the last moments".into(),
        medium: Some("emulated (RAM: survives a crash of the database, not of the machine)".into()),
        slices: slices(),
        placement: BTreeMap::from(["data", "log", "pool"].map(|what| (what.to_owned(), place.clone()))),
        ..Turn::default()
    }
}

/// Ten of each, in a noise of some percent.
fn slices() -> Vec<Slice> {
    let labels = [Label::With, Label::Without, Label::Control, Label::Without].repeat(10);
    let rate = |i: usize| 12_345.0 + ((i * 7919) % 101) as f64;
    std::iter::once(Label::Without)
        .chain(labels)
        .enumerate()
        .map(|(i, label)| Slice { label, rate: rate(i) })
        .collect()
}

fn lines(place: &Placement, found: &Found) -> String {
    let run = Run {
        format: FORMAT,
        id: "1".into(),
        at: "2026-11-21 20:33 UTC".into(),
        rounds: 3,
        text: found.text.clone(),
        ..Run::default()
    };
    let mut records = vec![Record::Run(Box::new(run))];
    for round in 0..3 {
        let all = found.case.expanded();
        records.extend(all.iter().map(|c| Record::Turn(Box::new(turn(place, c, round)))));
    }
    records.push(Record::End { run: "1".into(), how: "finished".into(), finished: true });
    records.iter().map(|r| serde_json::to_string(r).expect("a line") + "\n").collect()
}

/// The page of a lab in which every case was run, and nothing was impossible.
fn page(out: &Path) -> String {
    let place = Placement::of(out).expect("what it lies on");
    fs::create_dir_all(out.join("lab")).expect("a directory");
    for found in builtin::all().expect("no mistake in them") {
        let path = out.join("lab").join(format!("{}.jsonl", found.case.name()));
        fs::write(path, lines(&place, &found)).expect("written");
    }
    let (notebook, html) = (out.join("notebook.md"), out.join("page.html"));
    let options =
        ReportOptions { cases: Vec::new(), out: out.into(), notebook, html: html.clone(), readme: None };
    notebook::report(&options).expect("a report");
    fs::read_to_string(html).expect("the page")
}

#[test]
fn every_case_fits_a_laptop_and_paper() {
    let Some(browser) = browser() else { return };
    let out = tempfile::tempdir().expect("a directory");
    assert_fits(&browser, "lab.html", &page(out.path()));
}

/// A demo's result: a gain, one that noise hides, and what was found after kills.
fn demo(out: &Path) -> String {
    let spread = |median: f64| Spread { median, min: median * 0.8, max: median * 1.25 };
    let tps = |speedup: f64| Three {
        fs: spread(4_321.0),
        seawall: spread(4_321.0 * speedup),
        unsafe_bound: spread(11_234.0),
        speedup: Spread { median: speedup, min: speedup * 0.98, max: speedup * 1.02 },
        of_unsafe: spread(0.95),
        control: Some(Spread { median: 1.0, min: 0.96, max: 1.05 }),
    };
    let rows = [
        ("PostgreSQL, simple-update", 2.4),
        ("PostgreSQL, TPC-B-like", 1.03),
        ("SQLite, insert + update", 1.2),
    ];
    let labels = ["1 client", "4 clients", "16 clients"];
    let rows = rows.iter().flat_map(|(group, speedup)| {
        labels.map(|label| Row { group: (*group).into(), label: label.into(), tps: tps(*speedup) })
    });
    let kill = KillReport {
        what: "PostgreSQL and Seawall's daemon".into(),
        processes: 14,
        restart_seconds: Some(0.8),
        verdict: Verdict { acknowledged: 123_456, found: 123_460, unacknowledged: 4, ..Verdict::default() },
        bare_start: Some(BareStart::Refused("FATAL:  Seawall holds writes that these files lack".into())),
    };
    let report = DemoReport {
        medium: "emulated (RAM: survives a crash of the database, not of the machine)".into(),
        machine: Machine { cpu: "AMD EPYC".into(), cpus: 2, ..Machine::default() },
        date: "2026-11-21 20:33 UTC".into(),
        versions: vec![("Seawall".into(), "0.1.0".into()), ("PostgreSQL".into(), "15.18".into())],
        rounds: 3,
        seconds: 2,
        scale: 16,
        pool_bytes: 256 << 20,
        settings: vec![("shared_buffers".into(), "384MB".into()), ("max_wal_size".into(), "4GB".into())],
        rows: rows.collect(),
        kills: vec![kill],
    };
    assert!(report.to_text().contains("no difference shown"), "{}", report.to_text());
    let (json, page) = (out.join("demo.json"), out.join("demo.html"));
    fs::write(&json, serde_json::to_vec(&report).expect("JSON")).expect("written");
    seawall_lab::demo::render(&json, &page).expect("a page");
    fs::read_to_string(page).expect("the page")
}

#[test]
fn the_demos_page_fits_and_quotes_no_gain_that_noise_hides() {
    let out = tempfile::tempdir().expect("a directory");
    let page = demo(out.path());
    // Above columns: those of the first and the last group.
    assert_eq!(page.matches("class=\"gain\"").count(), 6, "{page}");
    assert_eq!(page.matches("no difference shown").count(), 3, "{page}");
    let Some(browser) = browser() else { return };
    assert_fits(&browser, "demo.html", &page);
}
