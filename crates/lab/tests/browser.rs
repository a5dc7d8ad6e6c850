//! The lab's page in a real browser: every case with everything in it, on a laptop, a telephone and paper.

#[path = "../../awr/tests/browser/chromium.rs"]
mod chromium;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use chromium::{assert_fits, browser};
use seawall_awr::placement::Placement;
use seawall_lab::case::builtin::{self, Found};
use seawall_lab::case::{Configuration, Measure};
use seawall_lab::cli::ReportOptions;
use seawall_lab::notebook;
use seawall_lab::trial::record::{DbTime, FORMAT, Record, Run, Turn, Work};

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
        placement: BTreeMap::from(["data", "log", "pool"].map(|what| (what.to_owned(), place.clone()))),
        ..Turn::default()
    }
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
    let options = ReportOptions { cases: Vec::new(), out: out.into(), notebook, html: html.clone() };
    notebook::report(&options).expect("a report");
    fs::read_to_string(html).expect("the page")
}

#[test]
fn every_case_fits_a_laptop_and_paper() {
    let Some(browser) = browser() else { return };
    let out = tempfile::tempdir().expect("a directory");
    assert_fits(&browser, "lab.html", &page(out.path()));
}
