//! `sustained`: several times the pool's size in one run, so that the log fills and has to be emptied
//! while the load goes on. Here the tail counts: p99.9 and the longest stall.
//!
//! Flat out, no log can be faster than what lies under it; steady, at half of what the disk takes,
//! nothing should ever stall. The slow side (the bare file system) is cut off after some seconds.
//!
//! Beside each load a thread sleeps ([`super::late`]): what a stall is compared with.

use anyhow::Result;
use seawall_load::write::Pattern;

use super::disk::Disk;
use super::late;
use super::measure::{
    Measured, SIDES, Samples, Shape, describe, key, mean_us, measure_around, run_load, with_distributions,
    with_shape,
};
use super::runs::Runs;
use super::{Fields, Scope, SectionResult};
use crate::lab::Lab;
use crate::side::{Side, order};
use crate::table;

const RATE_OPS_MAX: f64 = 20_000.0;
const SECONDS_MAX: f64 = 60.0;
const BLOCK_BYTES: u64 = 8192;

/// One row's shape.
#[derive(Clone, Copy)]
struct Run {
    shape: Shape,
    /// At a fixed rate the disk can take, instead of flat out.
    steady: bool,
    /// That rate, in operations a second, once the disk was probed.
    rate: Option<f64>,
}

/// What its rounds say.
#[derive(Default)]
struct Rounds {
    loads: Samples,
    /// How late the thread beside each load woke at worst, microseconds.
    late_us: Runs<Side, f64>,
}

fn runs(scope: Scope) -> Vec<Run> {
    let run = |pattern, threads, steady| {
        let shape = Shape::shared(BLOCK_BYTES, pattern, threads, 1);
        Run { shape, steady, rate: None }
    };
    if scope.quick {
        return vec![run(Pattern::Random, 1, false), run(Pattern::Random, 1, true)];
    }
    vec![
        run(Pattern::Sequential, 1, false),
        run(Pattern::Random, 1, false),
        run(Pattern::Random, 4, false),
        run(Pattern::Append, 1, false),
        run(Pattern::Sequential, 1, true),
        run(Pattern::Random, 1, true),
        run(Pattern::Append, 1, true),
    ]
}

/// How much a run writes.
#[derive(Clone, Copy)]
struct Amounts {
    total: u64,
    file: u64,
    /// Everybody is cut off after a minute, the bare file system, which would take many, far earlier.
    fs_seconds: f64,
}

impl Amounts {
    fn of(pool: u64, quick: bool) -> Self {
        let (pools, file_pools, fs_seconds) = if quick { (2, 1, 2.0) } else { (4, 2, 10.0) };
        Amounts { total: pool * pools, file: pool * file_pools, fs_seconds }
    }
}

/// What the files take: for each side two to overwrite and one to append to, flat out and steady.
pub fn space(scope: Scope) -> u64 {
    let amounts = Amounts::of(scope.pool, scope.quick);
    (amounts.total + 2 * amounts.file) * 2 * Side::WRITES.len() as u64
}

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    runs(scope).len() * scope.rounds * Side::WRITES.len()
}

/// Measures everything.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let amounts = Amounts::of(lab.pool.size(), scope.quick);
    lab.progress.doing("measuring the disk's own rate");
    let disk = Disk::probe(lab, BLOCK_BYTES, amounts.file)?;
    let runs: Vec<Run> = runs(scope).into_iter().map(|run| run.paced(disk)).collect();
    let mut rounds: Vec<Rounds> = runs.iter().map(|_| Rounds::default()).collect();
    for round in 0..scope.rounds {
        for (run, rounds) in runs.iter().zip(&mut rounds) {
            for side in order(&Side::WRITES, round) {
                let (load, late_us) = run.measure(lab, side, amounts, round)?;
                rounds.loads.add(side, load);
                rounds.late_us.add(side, late_us);
            }
        }
    }
    let row = |(run, rounds): (&Run, &Rounds)| figures(run.fields(lab.pool.size(), amounts), rounds);
    let rows = runs.iter().zip(&rounds).map(row).collect();
    Ok((rows, table(&runs, &rounds, lab.medium())))
}

impl Run {
    /// With the pace of a steady load: half of what the disk takes.
    fn paced(mut self, disk: Disk) -> Self {
        let half = disk.bytes_per_s(self.shape.pattern) / 2.0 / self.shape.bs as f64;
        self.rate = self.steady.then_some(half.clamp(1.0, RATE_OPS_MAX).floor());
        self
    }

    /// One round: what the load says, and how late the thread beside it woke at worst, microseconds.
    fn measure(&self, lab: &Lab, side: Side, amounts: Amounts, round: usize) -> Result<(Measured, f64)> {
        let appends = self.shape.pattern == Pattern::Append;
        let size = if appends { amounts.total + (1 << 20) } else { amounts.file };
        let seconds = if side == Side::Fs { amounts.fs_seconds } else { SECONDS_MAX };
        let mut limits = vec![("--sustained", amounts.total.to_string()), ("--seconds", seconds.to_string())];
        limits.extend(self.rate.map(|rate| ("--rate", rate.to_string())));
        let kind = if self.steady { "steady" } else { "sustained" };
        let mut late_us = f64::NAN;
        let load = measure_around(lab, side, self.shape, kind, (size, &limits), round, |load| {
            let (printed, late) = late::beside(|| run_load(load));
            late_us = late;
            printed
        })?;
        Ok((load, late_us))
    }

    fn fields(&self, pool: u64, amounts: Amounts) -> Fields {
        with_shape(Fields::default(), &self.shape)
            .with("pace", if self.steady { "steady" } else { "flat-out" })
            .with("rate_ops_s", self.rate.unwrap_or(0.0))
            .with("pool_mb", pool >> 20)
            .with("total_mb", amounts.total >> 20)
    }
}

/// Ratios are of the mean: with a log that fills, a median would hide what matters.
fn figures(row: Fields, rounds: &Rounds) -> Fields {
    let row = with_distributions(row, &rounds.loads, mean_us);
    rounds.late_us.with_figures(row, &SIDES, key, &[("late_us", |us| *us)])
}

fn table(runs: &[Run], rounds: &[Rounds], medium: &str) -> String {
    let header = ["sustained", "side", "mean µs", "p99.9 µs", "longest ms", "a sleeper late ms", "MB/s"];
    let mut rows = Vec::new();
    for (run, rounds) in runs.iter().zip(rounds) {
        let pace = if run.steady { "steady" } else { "flat out" };
        for side in SIDES {
            let told = |figure: fn(&Measured) -> f64| rounds.loads.told(side, figure);
            rows.push(vec![
                format!("{}, {pace}", describe(&run.shape)),
                key(side).to_owned(),
                told(mean_us),
                told(|m| m.report.latency.p999_us),
                told(|m| m.report.latency.max_us / 1e3),
                rounds.late_us.told(side, |us| us / 1e3),
                told(|m| m.report.bytes as f64 / m.report.seconds / 1e6),
            ]);
        }
    }
    format!("{}  seawall on: {medium}\n", table::format(&header, &rows))
}

#[cfg(test)]
mod tests {
    use super::super::measure::tests::samples;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        let amounts = Amounts::of(1 << 28, false);
        let mut rounds = Rounds { loads: samples(), late_us: Runs::default() };
        SIDES.into_iter().for_each(|side| rounds.late_us.add(side, 0.0));
        for run in runs(Scope { quick: false, rounds: 1, pool: 0 }) {
            figures(run.fields(1 << 28, amounts), &rounds).assert_keys("sustained");
        }
    }
}
