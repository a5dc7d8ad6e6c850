//! One run of the write load on one side, and what several of them say.
//!
//! The same program with the same options runs on every side. It reads everything back and compares it with
//! what it knows it wrote; damage is an error, never a figure.

use std::process::Command;

use anyhow::{Context, Result};
use seawall_load::write::{Pattern, Report};

use super::Fields;
use super::placed::{self, Placed};
use super::runs::{Figure, Runs};
use crate::lab::Lab;
use crate::launch;
use crate::process::run as run_process;
use crate::side::{Preset, Side};
use crate::table::short;

/// One row's shape.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub bs: u64,
    pub pattern: Pattern,
    pub threads: u32,
    pub processes: u32,
    /// Each worker has a file of its own.
    pub private: bool,
}

impl Shape {
    /// All workers write one file.
    pub const fn shared(bs: u64, pattern: Pattern, threads: u32, processes: u32) -> Self {
        Self { bs, pattern, threads, processes, private: false }
    }
}

/// The sides in the order of the file's keys.
pub const SIDES: [Side; 4] = [Side::Seawall, Side::Fs, Side::Unsafe, Side::Eatmydata];

/// The name a side has in `bench.json`.
pub fn key(side: Side) -> &'static str {
    match side {
        Side::Fs => "fs_sync",
        Side::Seawall => "seawall",
        Side::Mount => "mount",
        Side::Unsafe => "fs_nosync",
        Side::Eatmydata => "eatmydata",
        Side::Control => "control",
    }
}

/// A pattern's word on the load's command line and in results.
pub fn word(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Sequential => "sequential",
        Pattern::Random => "random",
        Pattern::Append => "append",
    }
}

/// What a run may do: bytes of its file, and limits, options of the load.
pub type Amount<'a> = (u64, &'a [(&'a str, String)]);

/// One run of the write load on one side; damage found by its own check is an error.
pub fn measure(
    lab: &Lab,
    side: Side,
    shape: Shape,
    kind: &str,
    amount: Amount<'_>,
    round: usize,
) -> Result<Measured> {
    measure_around(lab, side, shape, kind, amount, round, run_load)
}

/// Runs the prepared write load: what it printed.
pub fn run_load(load: Command) -> Result<Vec<u8>> {
    run_process(load, "the write load")
}

/// [`measure`], with `run` in the place of [`run_load`]: for what is to be watched while the load runs, and not while
/// it is prepared.
pub fn measure_around(
    lab: &Lab,
    side: Side,
    shape: Shape,
    kind: &str,
    (size, limits): Amount<'_>,
    round: usize,
    run: impl FnOnce(Command) -> Result<Vec<u8>>,
) -> Result<Measured> {
    let what = format!("round {}: {kind} {}, {}", round + 1, describe(&shape), key(side));
    lab.progress.doing(&what);
    // Each side has its own file, which every round overwrites.
    let pattern = word(shape.pattern);
    let dir = lab.data(side, &format!("{kind}-{}-{}-{pattern}", key(side), shape.bs));
    let load = Placed { lab, dir, pool: None, syncs: side != Side::Unsafe, shape, size };
    load.prepare_once()?;
    let mut args = load.arguments();
    args.extend(limits.iter().flat_map(|(limit, value)| [limit.into(), value.into()]));
    lab.settle()?;
    let command = launch::command(lab, side, Preset::Sqlite, &load.dir, &lab.tools.load, args)?;
    let before = log_end(lab, side)?;
    let json = run(command).with_context(|| what.clone())?;
    let report = placed::report(&json).with_context(|| what.clone())?;
    lab.progress.done(&format!("{what}: p50 {} µs", short(report.latency.p50_us)));
    let records = log_end(lab, side)? - before;
    let logged = (records as f64 / report.ops.max(1) as f64).min(1.0);
    Ok(Measured { report, logged })
}

/// Where the log ends. Only asked on Seawall's side, and while no daemon serves the pool.
fn log_end(lab: &Lab, side: Side) -> Result<u64> {
    if side == Side::Seawall { lab.pool.last_lsn() } else { Ok(0) }
}

/// One run.
#[derive(Clone)]
pub struct Measured {
    pub report: Report,
    /// Records that the log received for each operation, at most 1: that a write went through the log is seen
    /// in the log, not believed.
    pub logged: f64,
}

/// Runs by side, one a round.
pub type Samples = Runs<Side, Measured>;

/// The median of a run.
pub fn p50_us(measured: &Measured) -> f64 {
    measured.report.latency.p50_us
}

/// Its mean.
pub fn mean_us(measured: &Measured) -> f64 {
    measured.report.latency.mean_us
}

/// Operations a second.
pub fn ops_s(measured: &Measured) -> f64 {
    measured.report.ops_per_s
}

/// What every row has of each side.
const FIGURES: [Figure<Measured>; 6] = [
    ("us", p50_us),
    ("mean_us", mean_us),
    ("p99_us", |m| m.report.latency.p99_us),
    ("p999_us", |m| m.report.latency.p999_us),
    ("longest_us", |m| m.report.latency.max_us),
    ("ops_s", ops_s),
];

/// Adds a shape.
pub fn with_shape(row: Fields, shape: &Shape) -> Fields {
    row.with("bs", shape.bs)
        .with("pattern", word(shape.pattern))
        .with("threads", shape.threads)
        .with("processes", shape.processes)
}

/// Adds each side's distribution, what went through the log, and ratios of a latency's medians.
pub fn with_distributions(row: Fields, samples: &Samples, latency: fn(&Measured) -> f64) -> Fields {
    let median = |side| samples.median(side, latency);
    samples
        .with_figures(row, &SIDES, key, &FIGURES)
        .with_spread("seawall_logged", samples.spread(Side::Seawall, |measured| measured.logged))
        .with_ratio("speedup", median(Side::Fs), median(Side::Seawall))
        .with_ratio("over_floor", median(Side::Seawall), median(Side::Unsafe))
}

/// A shape for people.
pub fn describe(shape: &Shape) -> String {
    let Shape { bs, pattern, threads, processes, private } = shape;
    let plural = |n: &u32, what: &str, many: &str| format!("{n} {}", if *n == 1 { what } else { many });
    format!(
        "{}K {}, {}, {}{}",
        bs / 1024,
        word(*pattern),
        plural(processes, "process", "processes"),
        plural(threads, "thread", "threads"),
        if *private { ", a file each" } else { "" }
    )
}

#[cfg(test)]
pub mod tests {
    use seawall_load::latency::Summary;

    use super::*;

    /// One round of nothing on every side.
    pub fn samples() -> Samples {
        let mut samples = Samples::default();
        SIDES.into_iter().for_each(|side| samples.add(side, nothing()));
        samples
    }

    /// A run of nothing.
    pub fn nothing() -> Measured {
        let report = Report {
            bs: 8192,
            pattern: Pattern::Random,
            threads: 1,
            processes: 1,
            sync: seawall_load::write::Sync::None,
            ops: 1,
            bytes: 8192,
            seconds: 1.0,
            ops_per_s: 1.0,
            latency: Summary { p50_us: 2.0, mean_us: 2.0, ..Summary::default() },
            write: None,
            fsync: None,
            verified: Default::default(),
        };
        Measured { report, logged: 1.0 }
    }
}
