//! `block_sustained`: several times the log on a block device in one run, so that it comes round while the load goes
//! on; with log and data on one disk, and with one of them on a disk that is slow.
//!
//! Flat out the load goes as fast as what it waits for; steady, at half of what Seawall's side did flat out, nothing
//! should wait for room. What counts is p99.9 and the longest stall. Beside each load a thread sleeps ([`super::late`]):
//! what a stall is compared with.

use std::time::Duration;

use anyhow::{Context, Result};
use seawall_load::write::{Pattern, Report};

use super::late;
use super::measure::{Shape, key};
use super::placed::Placed;
use super::runs::{Figure, Runs};
use super::{Fields, Scope, SectionResult};
use crate::lab::Lab;
use crate::pool::Pool;
use crate::side::Side;
use crate::slow_disk::SlowDisk;
use crate::table::{self, short};

const SIDES: [Side; 3] = [Side::Fs, Side::Seawall, Side::Unsafe];
/// Bytes of the pool in memory: a small log.
pub const POOL: u64 = 32 << 20;
const FLUSH: Duration = Duration::from_millis(5);
const BLOCK_BYTES: u64 = 8192;
const PROCESSES: u32 = 16;
/// What is written, in logs.
const LOGS: u64 = 4;
/// Whoever takes longer is cut off.
const SECONDS: f64 = 10.0;

/// Where log and data lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Disks {
    /// Both on the disk under test.
    One,
    /// The data on a slow one.
    SlowData,
    /// The log on a slow one.
    SlowLog,
}

impl Disks {
    fn name(self) -> &'static str {
        match self {
            Disks::One => "one",
            Disks::SlowData => "slow data",
            Disks::SlowLog => "slow log",
        }
    }
}

/// One row: where, and how fast, in operations a second; `None`: flat out.
#[derive(Clone, Copy)]
struct Row {
    disks: Disks,
    rate: Option<f64>,
}

impl Row {
    fn pace(&self) -> &'static str {
        if self.rate.is_some() { "steady" } else { "flat-out" }
    }
}

/// Bytes of the log on the disk of a pool of so many in memory.
const fn log_bytes(pool: u64) -> u64 {
    3 * pool + (8 << 20)
}

/// What a run writes.
const fn total_bytes(pool: u64) -> u64 {
    LOGS * log_bytes(pool)
}

const fn file_bytes(pool: u64) -> u64 {
    2 * pool
}

fn all_disks() -> Vec<Disks> {
    let slow = [Disks::SlowData, Disks::SlowLog].into_iter().filter(|_| SlowDisk::is_possible());
    [Disks::One].into_iter().chain(slow).collect()
}

/// What log and files take on the disk under test.
pub fn space(scope: Scope) -> u64 {
    2 * log_bytes(scope.pool) + 2 * file_bytes(scope.pool) * SIDES.len() as u64
}

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    all_disks().len() * 2 * SIDES.len() * scope.rounds
}

/// Measures everything; where we may not mount the slow disk, without it.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let mut rows = Vec::new();
    let mut medium = String::new();
    for disks in all_disks() {
        let scene = Scene::set_up(lab, scope, disks)?;
        let flat = Row { disks, rate: None };
        let runs = scene.rounds(flat, scope)?;
        let rate = (runs.median(Side::Seawall, rate) / 2.0).max(1.0).floor();
        let steady = Row { disks, rate: Some(rate) };
        rows.extend([(flat, runs), (steady, scene.rounds(steady, scope)?)]);
        scene.pool.medium().clone_into(&mut medium);
    }
    let fields = rows.iter().map(|(row, runs)| fields(row, runs, scope)).collect();
    Ok((fields, table(&rows, &medium)))
}

/// Three files and a log.
struct Scene<'a> {
    lab: &'a Lab,
    disks: Disks,
    bytes: u64,
    pool: Pool,
    /// Behind the pool, whose log may lie on it.
    slow: Option<SlowDisk>,
}

impl<'a> Scene<'a> {
    fn set_up(lab: &'a Lab, scope: Scope, disks: Disks) -> Result<Self> {
        // Twice what its files take: on one that is nearly full ext4 writes back before it lets anybody write.
        let on_it = log_bytes(scope.pool) + file_bytes(scope.pool) * SIDES.len() as u64;
        let mount = || SlowDisk::mount(lab, 2 * on_it, FLUSH).context("cannot mount the slow disk");
        let slow = (disks != Disks::One).then(mount).transpose()?;
        let place = match &slow {
            Some(slow) if disks == Disks::SlowLog => slow.path().join("log"),
            _ => lab.work.data("block-sustained-log"),
        };
        lab.fresh_dir(&place)?;
        let pool = Pool::on_block(&lab.tools, &lab.identity, scope.pool, place.join("block.log"))?;
        let scene = Scene { lab, disks, bytes: scope.pool, pool, slow };
        SIDES.iter().try_for_each(|side| scene.load(*side).prepare())?;
        Ok(scene)
    }

    fn load(&self, side: Side) -> Placed<'_> {
        let dir = match &self.slow {
            Some(slow) if self.disks == Disks::SlowData => slow.path().join(key(side)),
            _ => self.lab.data(side, &format!("block-sustained-{}", key(side))),
        };
        Placed {
            lab: self.lab,
            dir,
            pool: (side == Side::Seawall).then_some(&self.pool),
            syncs: side != Side::Unsafe,
            shape: Shape::shared(BLOCK_BYTES, Pattern::Random, 1, PROCESSES),
            size: file_bytes(self.bytes),
        }
    }

    fn rounds(&self, row: Row, scope: Scope) -> Result<Runs<Side, Run>> {
        let title = |side| format!("{} disk, {}, {}", row.disks.name(), row.pace(), key(side));
        let told = |run: &Run| format!("longest {} ms", short(run.report.latency.max_us / 1e3));
        Runs::measure(self.lab, &SIDES, scope.rounds, title, told, |side, _| self.measure(row, side))
    }

    fn measure(&self, row: Row, side: Side) -> Result<Run> {
        let total = total_bytes(self.bytes);
        let mut limits = vec![("--sustained", total.to_string()), ("--seconds", SECONDS.to_string())];
        limits.extend(row.rate.map(|rate| ("--rate", rate.to_string())));
        let log_end = || if side == Side::Seawall { self.pool.last_lsn() } else { Ok(0) };
        let before = log_end()?;
        let (report, late_us) = late::beside(|| self.load(side).run(&limits));
        let report = report?;
        let logged = ((log_end()? - before) as f64 / report.ops.max(1) as f64).min(1.0);
        Ok(Run { report, late_us, logged })
    }
}

/// One run of the load.
struct Run {
    report: Report,
    /// How late the thread beside it woke at worst, microseconds.
    late_us: f64,
    /// Records in the log for each operation, at most 1.
    logged: f64,
}

const FIGURES: [Figure<Run>; 5] = [
    ("ops_s", |run| run.report.ops_per_s),
    ("us", |run| run.report.latency.p50_us),
    ("p999_us", |run| run.report.latency.p999_us),
    ("longest_us", |run| run.report.latency.max_us),
    ("late_us", |run| run.late_us),
];

fn rate(run: &Run) -> f64 {
    run.report.ops_per_s
}

fn fields(row: &Row, runs: &Runs<Side, Run>, scope: Scope) -> Fields {
    let told = Fields::default()
        .with("disks", row.disks.name())
        .with("bs", BLOCK_BYTES)
        .with("processes", PROCESSES)
        .with("pace", row.pace())
        .with("rate_ops_s", row.rate.unwrap_or(0.0))
        .with("log_mb", log_bytes(scope.pool) >> 20)
        .with("total_mb", total_bytes(scope.pool) >> 20)
        .with("flush_ms", FLUSH.as_millis() as u64);
    let told = runs.with_figures(told, &SIDES, key, &FIGURES);
    runs.with_ratios(told, rate, &[("speedup", Side::Seawall, Side::Fs)])
        .with_spread("seawall_logged", runs.spread(Side::Seawall, |run| run.logged))
}

fn table(rows: &[(Row, Runs<Side, Run>)], medium: &str) -> String {
    let header = [
        "a log that comes round",
        "side",
        "commits/s",
        "median µs",
        "p99.9 µs",
        "longest µs",
        "a sleeper late µs",
    ];
    let mut lines = Vec::new();
    for (row, runs) in rows {
        for side in SIDES {
            let mut line = vec![format!("{}, {}", row.disks.name(), row.pace()), key(side).to_owned()];
            line.extend(FIGURES.map(|(_, figure)| runs.told(side, figure)));
            lines.push(line);
        }
    }
    format!("{}  seawall on: {medium}\n", table::format(&header, &lines))
}

#[cfg(test)]
mod tests {
    use super::super::measure::tests::nothing;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        let mut runs = Runs::default();
        for side in SIDES {
            runs.add(side, Run { report: nothing().report, late_us: 1.0, logged: 1.0 });
        }
        let row = Row { disks: Disks::SlowLog, rate: Some(7.0) };
        let scope = Scope { quick: false, rounds: 1, pool: POOL };
        fields(&row, &runs, scope).assert_keys("block_sustained");
        assert!(table(&[(row, runs)], "a disk").contains("slow log, steady"));
    }
}
