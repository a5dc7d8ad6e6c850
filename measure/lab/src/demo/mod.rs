//! `demo`: what Seawall gains, and that nothing is lost, in some five minutes.
//!
//! 1. pgbench and a SQLite load on three sides, interleaved, with the spread ([`crate::compare`]).
//! 2. kill -9 at full load, restart, and the proof from the outside ledger ([`kill`]).
//! 3. A table, `demo.html`, `demo.json`. A lost commit makes the demo fail.

mod kill;
mod report;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use seawall_load::sqlite::JournalMode;

use crate::cli::{DemoOptions, DemoPart};
use crate::compare::{self, Clusters};
use crate::html;
use crate::lab::Lab;
use crate::pg::{Bench, Test};
use crate::progress::Progress;
use crate::side::Side;
use crate::sqlite;
use crate::tools::{postgres_bin, postgres_version};

pub use kill::{BareStart, KillReport};
pub use report::{DemoReport, Row};

const CLIENTS: [usize; 3] = [1, 4, 16];
const JOURNALS: [JournalMode; 2] = [JournalMode::Wal, JournalMode::Delete];
const KILL_STEPS: usize = 3;

/// Runs the demo.
pub fn run(options: &DemoOptions) -> Result<()> {
    let bin = postgres_bin()?;
    let has = |part| options.only.contains(&part);
    let progress = Progress::new(steps(options));
    let lab =
        Lab::set_up(&options.common, progress, compare::postgres_space(&Side::CONTROLLED, options.scale))?;
    let mut report = DemoReport::new(&lab, options);
    if has(DemoPart::Postgres) || has(DemoPart::Kill) {
        report.add_version("PostgreSQL", &postgres_version(&bin)?);
        let clusters = Clusters::create(&lab, &bin, &Side::CONTROLLED, options.scale)?;
        if has(DemoPart::Postgres) {
            report.add_postgres(clusters.measure(&shapes(options), options.rounds)?);
        }
        if has(DemoPart::Kill) {
            report.kills.extend(kill::postgres(&lab, &bin, &clusters)?);
        }
    }
    report.add_version("SQLite", &compare::create_sqlite(&lab, &JOURNALS)?);
    if has(DemoPart::Sqlite) {
        let shapes = JOURNALS.map(|journal| sqlite::Shape { journal, seconds: options.seconds as f64 });
        report.add_sqlite(compare::measure_sqlite(&lab, &shapes, options.rounds)?);
    }
    if has(DemoPart::Kill) {
        report.kills.push(kill::sqlite(&lab)?);
    }
    lab.progress.finish();
    drop(lab);
    publish(&report, options)
}

fn publish(report: &DemoReport, options: &DemoOptions) -> Result<()> {
    out!("{}", report.to_text());
    let page = options.common.out.join("demo.html");
    let json = options.common.out.join("demo.json");
    fs::write(&json, serde_json::to_vec_pretty(report)?)
        .with_context(|| format!("cannot write {}", json.display()))?;
    fs::write(&page, html::page(report)).with_context(|| format!("cannot write {}", page.display()))?;
    outln!("\nThe same as a page: {}", page.display());
    let faults = report.faults();
    if faults.is_empty() { Ok(()) } else { bail!("{}", faults.join("; ")) }
}

/// Renders the page again.
pub fn render(json: &Path, page: &Path) -> Result<()> {
    let bytes = fs::read(json).with_context(|| format!("cannot read {}", json.display()))?;
    let report: DemoReport = serde_json::from_slice(&bytes)
        .with_context(|| format!("cannot read the report in {}", json.display()))?;
    fs::write(page, html::page(&report)).with_context(|| format!("cannot write {}", page.display()))
}

fn shapes(options: &DemoOptions) -> Vec<Bench> {
    let shape = |test, clients| Bench { test, clients, seconds: options.seconds };
    Test::UPDATING.iter().flat_map(|&test| CLIENTS.map(|clients| shape(test, clients))).collect()
}

fn steps(options: &DemoOptions) -> usize {
    let has = |part| options.only.contains(&part);
    let mut steps = 0;
    if has(DemoPart::Postgres) {
        steps += compare::postgres_steps(&Side::CONTROLLED, shapes(options).len(), options.rounds);
    } else if has(DemoPart::Kill) {
        steps += 1;
    }
    if has(DemoPart::Sqlite) {
        steps += compare::sqlite_steps(JOURNALS.len(), options.rounds);
    }
    if has(DemoPart::Kill) {
        steps += KILL_STEPS;
    }
    steps
}
