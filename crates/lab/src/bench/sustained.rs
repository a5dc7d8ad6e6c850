//! `sustained`: several times the pool's size in one run, so that the log fills and has to be emptied
//! while the load goes on. Here the tail counts: p99.9 and the longest stall.
//!
//! Flat out, no log can be faster than what lies under it; steady, at half of what the disk takes,
//! nothing should ever stall. The slow side (the bare file system) is cut off after some seconds.

use std::fs::File;
use std::io::Write;
use std::time::Instant;

use anyhow::Result;
use seawall_load::write::Pattern;

use super::write::{Samples, Shape, cell, describe, key, measure, with_tails};
use super::{Fields, Scope, SectionResult};
use crate::lab::Lab;
use crate::side::{Side, order};
use crate::table;

const RATE_OPS_MAX: f64 = 20_000.0;
const PROBE_LEN: usize = 256 << 20;

/// One row's shape.
#[derive(Clone, Copy)]
struct Run {
    shape: Shape,
    /// At a fixed rate the disk can take, instead of flat out.
    steady: bool,
}

fn runs(scope: Scope) -> Vec<Run> {
    let run =
        |pattern, threads, steady| Run { shape: Shape { bs: 8192, pattern, threads, processes: 1 }, steady };
    if scope.quick {
        return vec![run(Pattern::Random, 1, false)];
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

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    runs(scope).len() * scope.rounds * Side::WRITES.len()
}

/// Measures everything.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let pool = lab.pool.size();
    let (pools, file_pools, seconds_max) = if scope.quick { (2, 1, 2.0) } else { (4, 2, 10.0) };
    let disk = disk_bytes_per_s(lab)?;
    let rate = |shape: &Shape| (disk / 2.0 / shape.bs as f64).min(RATE_OPS_MAX).floor();
    let runs = runs(scope);
    let mut samples: Vec<Samples> = runs.iter().map(|_| Samples::default()).collect();
    for round in 0..scope.rounds {
        for (run, samples) in runs.iter().zip(&mut samples) {
            for side in order(Side::WRITES, round) {
                let total = pool * pools;
                let appends = run.shape.pattern == Pattern::Append;
                let size = if appends { total + (1 << 20) } else { pool * file_pools };
                let rate = run.steady.then(|| rate(&run.shape).to_string());
                let limits = [("--size", size.to_string()), ("--sustained", total.to_string())];
                let mut args: Vec<&str> =
                    limits.iter().flat_map(|(name, value)| [*name, value.as_str()]).collect();
                if let Some(rate) = &rate {
                    args.extend(["--rate", rate]);
                }
                // Everybody is cut off after a minute, the bare file system far earlier.
                let seconds = if side == Side::Fs { seconds_max } else { 60.0 }.to_string();
                args.extend(["--seconds", &seconds]);
                let kind = if run.steady { "steady" } else { "sustained" };
                samples.add(side, &measure(lab, side, run.shape, kind, &args, round)?);
            }
        }
    }
    let rows: Result<Vec<Fields>> = runs
        .iter()
        .zip(&samples)
        .map(|(run, samples)| {
            let row = Fields::default()
                .with("bs", run.shape.bs)
                .with("pattern", super::write::word(run.shape.pattern))
                .with("threads", run.shape.threads)
                .with("processes", run.shape.processes)
                .with("pace", if run.steady { "steady" } else { "flat-out" })
                .with("rate_ops_s", if run.steady { rate(&run.shape) } else { 0.0 })
                .with("pool_mb", pool >> 20)
                .with("total_mb", (pool * pools) >> 20);
            figures(row, samples)
        })
        .collect();
    Ok((rows?, table(&runs, &samples, lab.medium())?))
}

/// Ratios are of the mean: with a log that fills, a median would hide what matters.
fn figures(mut row: Fields, samples: &Samples) -> Result<Fields> {
    let mean = |side| samples.latency(side, |l| l.mean_us);
    for side in [Side::Seawall, Side::Fs, Side::Unsafe, Side::Eatmydata] {
        row = row.with_spread(&format!("{}_us", key(side)), samples.latency(side, |l| l.p50_us)?);
    }
    let seawall = mean(Side::Seawall)?.median;
    row = row.with_ratio("speedup", mean(Side::Fs)?.median, seawall).with_ratio(
        "over_floor",
        seawall,
        mean(Side::Unsafe)?.median,
    );
    with_tails(row, samples)
}

fn table(runs: &[Run], samples: &[Samples], medium: &str) -> Result<String> {
    let header = ["sustained", "side", "mean µs", "p99.9 µs", "longest ms", "MB/s"];
    let mut rows = Vec::new();
    for (run, samples) in runs.iter().zip(samples) {
        let pace = if run.steady { "steady" } else { "flat out" };
        for side in [Side::Seawall, Side::Fs, Side::Unsafe, Side::Eatmydata] {
            rows.push(vec![
                format!("{}, {pace}", describe(&run.shape)),
                key(side).to_owned(),
                cell(samples.latency(side, |l| l.mean_us)?),
                cell(samples.latency(side, |l| l.p999_us)?),
                cell(samples.latency(side, |l| l.max_us / 1e3)?),
                cell(samples.spread(side, |r| r.bytes as f64 / r.seconds / 1e6)?),
            ]);
        }
    }
    Ok(format!("{}  seawall on: {medium}\n", table::format(&header, &rows)))
}

/// What the disk takes, sequentially: the measure for a load it can keep up with.
fn disk_bytes_per_s(lab: &Lab) -> Result<f64> {
    let path = lab.work.path().join("probe");
    lab.settle()?;
    let chunk = vec![0x5a; 1 << 20];
    let mut file = File::create(&path)?;
    let started = Instant::now();
    for _ in 0..PROBE_LEN / chunk.len() {
        file.write_all(&chunk)?;
    }
    file.sync_data()?;
    let rate = PROBE_LEN as f64 / started.elapsed().as_secs_f64();
    drop(file);
    std::fs::remove_file(&path)?;
    Ok(rate)
}
