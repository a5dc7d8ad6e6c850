//! `write_fdatasync`: the latency of making one write durable, as a distribution.
//!
//! One operation is the pair pwrite + fdatasync; `X_us` is the median over rounds of a run's p50. A
//! run writes at most half a pool, so that it measures the log and not what happens when it is full
//! (that is [`super::sustained`]).

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use seawall_load::latency::Summary;
use seawall_load::write::{Pattern, Report};

use super::{Fields, Scope, SectionResult};
use crate::lab::Lab;
use crate::process::run as run_process;
use crate::side::{self, Preset, Side, order};
use crate::spread::Spread;
use crate::table::{self, short};

/// One row's shape.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub bs: u64,
    pub pattern: Pattern,
    pub threads: u32,
    pub processes: u32,
}

/// The name a side has in `bench.json`.
pub fn key(side: Side) -> &'static str {
    match side {
        Side::Fs => "fs_sync",
        Side::Seawall => "seawall",
        Side::Unsafe => "fs_nosync",
        Side::Eatmydata => "eatmydata",
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

fn shapes(scope: Scope) -> Vec<Shape> {
    let all = [Pattern::Sequential, Pattern::Random, Pattern::Append];
    if scope.quick {
        let one = all.map(|pattern| Shape { bs: 8192, pattern, threads: 1, processes: 1 });
        let two = [(2, 1), (1, 2)];
        let two =
            two.map(|(threads, processes)| Shape { bs: 8192, pattern: Pattern::Random, threads, processes });
        return one.into_iter().chain(two).collect();
    }
    let mut shapes = Vec::new();
    for bs in [4096, 8192] {
        for pattern in all {
            for (threads, processes) in [(1, 1), (2, 1), (8, 1), (1, 2), (1, 8)] {
                shapes.push(Shape { bs, pattern, threads, processes });
            }
        }
    }
    shapes
}

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    shapes(scope).len() * scope.rounds * Side::WRITES.len()
}

/// Measures everything.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let shapes = shapes(scope);
    let mut samples: Vec<Samples> = shapes.iter().map(|_| Samples::default()).collect();
    for round in 0..scope.rounds {
        for (shape, samples) in shapes.iter().zip(&mut samples) {
            for side in order(Side::WRITES, round) {
                let ops = (lab.pool.size() / 2 / shape.bs).min(if scope.quick { 4000 } else { 10_000 });
                let seconds = if scope.quick { 0.5 } else { 1.5 };
                let limits = ["--size", "64M", "--ops", &ops.to_string(), "--seconds", &seconds.to_string()];
                let report = measure(lab, side, *shape, "write", &limits, round)?;
                samples.add(side, &report);
            }
        }
    }
    let rows: Result<Vec<Fields>> =
        shapes.iter().zip(&samples).map(|(shape, samples)| row(*shape, samples)).collect();
    let table = table(&shapes, &samples, lab.medium())?;
    Ok((rows?, table))
}

/// One run of the write load on one side; damage found by its own check is an error.
pub fn measure(
    lab: &Lab,
    side: Side,
    shape: Shape,
    kind: &str,
    limits: &[&str],
    round: usize,
) -> Result<Report> {
    let Shape { bs, pattern, threads, processes } = shape;
    let pattern = word(pattern);
    let what = format!("round {}: {kind} {bs} {pattern}, {processes}×{threads}, {}", round + 1, key(side));
    lab.progress.doing(&what);
    let dir = data_dir(lab, side, kind, bs)?;
    lab.settle()?;
    let sync = if side == Side::Unsafe { "none" } else { "fdatasync" };
    // A WAL-like name: the preset logs `*-wal` files from their first write on.
    let name = if shape.pattern == Pattern::Append { "append.db-wal" } else { "load.db-wal" };
    let (bs, threads, processes) = (bs.to_string(), threads.to_string(), processes.to_string());
    let mut args = vec!["write", "--name", name, "--bs", &bs, "--pattern", pattern, "--sync", sync];
    args.extend(["--threads", &threads, "--processes", &processes, "--dir"]);
    let args = args.into_iter().map(Into::into).chain([dir.clone().into_os_string()]);
    let args: Vec<std::ffi::OsString> = args.chain(limits.iter().map(Into::into)).collect();
    let command = side::command(lab, side, Preset::Sqlite, &dir, &lab.tools.load, args)?;
    let json = run_process(command, "the write load").with_context(|| what.clone())?;
    let report: Report = serde_json::from_slice(&json).context("the write load's report")?;
    ensure!(report.verified.errors == 0, "{what}: damaged data: {:?}", report.verified.examples);
    lab.progress.done(&format!("{what}: p50 {} µs", short(report.latency.p50_us)));
    Ok(report)
}

/// Each side has its own files, which every round overwrites.
fn data_dir(lab: &Lab, side: Side, kind: &str, bs: u64) -> Result<PathBuf> {
    let dir = lab.work.data(&format!("{kind}-{}-{bs}", key(side)));
    if !dir.exists() {
        lab.fresh_dir(&dir)?;
    }
    Ok(dir)
}

/// Reports by side, one a round.
#[derive(Default)]
pub struct Samples(BTreeMap<Side, Vec<Report>>);

impl Samples {
    /// Adds one round's report.
    pub fn add(&mut self, side: Side, report: &Report) {
        self.0.entry(side).or_default().push(report.clone());
    }

    /// A figure's spread over the rounds of a side.
    pub fn spread(&self, side: Side, figure: impl Fn(&Report) -> f64) -> Result<Spread> {
        let values: Vec<f64> = self.0.get(&side).into_iter().flatten().map(figure).collect();
        Spread::of(&values).context("a side was never measured")
    }

    /// A latency figure's spread.
    pub fn latency(&self, side: Side, figure: impl Fn(&Summary) -> f64) -> Result<Spread> {
        self.spread(side, |report| figure(&report.latency))
    }
}

fn row(shape: Shape, samples: &Samples) -> Result<Fields> {
    let mut row = Fields::default()
        .with("bs", shape.bs)
        .with("pattern", word(shape.pattern))
        .with("threads", shape.threads)
        .with("processes", shape.processes);
    let p50 = |side| samples.latency(side, |l| l.p50_us);
    for side in [Side::Seawall, Side::Fs, Side::Unsafe, Side::Eatmydata] {
        row = row.with_spread(&format!("{}_us", key(side)), p50(side)?);
    }
    let seawall = p50(Side::Seawall)?.median;
    row = row.with_ratio("speedup", p50(Side::Fs)?.median, seawall).with_ratio(
        "over_floor",
        seawall,
        p50(Side::Unsafe)?.median,
    );
    with_tails(row, samples)
}

/// Adds the rest of each side's distribution.
pub fn with_tails(mut row: Fields, samples: &Samples) -> Result<Fields> {
    for side in [Side::Seawall, Side::Fs, Side::Unsafe, Side::Eatmydata] {
        let key = key(side);
        row = row
            .with_spread(&format!("{key}_mean_us"), samples.latency(side, |l| l.mean_us)?)
            .with_spread(&format!("{key}_p99_us"), samples.latency(side, |l| l.p99_us)?)
            .with_spread(&format!("{key}_p999_us"), samples.latency(side, |l| l.p999_us)?)
            .with_spread(&format!("{key}_longest_us"), samples.latency(side, |l| l.max_us)?)
            .with_spread(&format!("{key}_ops_s"), samples.spread(side, |r| r.ops_per_s)?);
    }
    Ok(row)
}

fn table(shapes: &[Shape], samples: &[Samples], medium: &str) -> Result<String> {
    let header = [
        "write + fdatasync, p50 µs",
        "seawall",
        "fs sync",
        "fs no sync",
        "eatmydata",
        "speedup",
        "over floor",
    ];
    let mut rows = Vec::new();
    for (shape, samples) in shapes.iter().zip(samples) {
        let p50 = |side| samples.latency(side, |l| l.p50_us);
        let (seawall, fs, floor) = (p50(Side::Seawall)?, p50(Side::Fs)?, p50(Side::Unsafe)?);
        rows.push(vec![
            describe(shape),
            cell(seawall),
            cell(fs),
            cell(floor),
            cell(p50(Side::Eatmydata)?),
            format!("{}×", short(fs.median / seawall.median)),
            short(seawall.median / floor.median),
        ]);
    }
    Ok(format!("{}  seawall on: {medium}\n", table::format(&header, &rows)))
}

/// A shape for people.
pub fn describe(shape: &Shape) -> String {
    let Shape { bs, pattern, threads, processes } = shape;
    let plural = |n: &u32, what: &str, many: &str| format!("{n} {}", if *n == 1 { what } else { many });
    format!(
        "{}K {}, {}, {}",
        bs / 1024,
        word(*pattern),
        plural(processes, "process", "processes"),
        plural(threads, "thread", "threads")
    )
}

/// `median (min–max)`
pub fn cell(spread: Spread) -> String {
    format!("{} ({}–{})", short(spread.median), short(spread.min), short(spread.max))
}
