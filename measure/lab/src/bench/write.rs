//! `write_fdatasync`: the latency of making one write durable, as a distribution.
//!
//! One operation is the pair pwrite + fdatasync; `X_us` is the median over rounds of a run's p50. A
//! run writes at most half a pool, so that it measures the log and not what happens when it is full
//! (that is [`super::sustained`]).

use anyhow::Result;
use seawall_load::write::Pattern;

use super::measure::{SIDES, Samples, Shape, describe, key, measure, with_tails, word};
use super::{Fields, Scope, SectionResult};
use crate::lab::Lab;
use crate::side::{Side, order};
use crate::table::{self, short};

const BLOCK_BYTES: [u64; 2] = [4096, 8192];
const FILE_BYTES: u64 = 64 << 20;
/// Twice over the file in blocks of 8 KiB: what begins dearer than it goes on shows in the tails, and not in the
/// middle.
const OPS: u64 = 40_000;
/// The log takes them all.
pub const POOL: u64 = 1 << 30;

fn shapes(scope: Scope) -> Vec<Shape> {
    let all = [Pattern::Sequential, Pattern::Random, Pattern::Append];
    if scope.quick {
        let one = all.map(|pattern| Shape::shared(8192, pattern, 1, 1));
        let two = [(2, 1), (1, 2)];
        let two = two.map(|(threads, processes)| Shape::shared(8192, Pattern::Random, threads, processes));
        return one.into_iter().chain(two).collect();
    }
    let mut shapes = Vec::new();
    for bs in BLOCK_BYTES {
        for pattern in all {
            for (threads, processes) in [(1, 1), (2, 1), (8, 1), (1, 2), (1, 8)] {
                shapes.push(Shape::shared(bs, pattern, threads, processes));
            }
        }
    }
    shapes
}

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    shapes(scope).len() * scope.rounds * Side::WRITES.len()
}

/// What the files take: two for each side and block size.
pub fn space() -> u64 {
    FILE_BYTES * 2 * Side::WRITES.len() as u64 * BLOCK_BYTES.len() as u64
}

/// Programs that are missing are named before anything is measured.
pub fn find_programs() -> Result<()> {
    crate::tools::eatmydata_library().map(drop)
}

/// Measures everything.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let shapes = shapes(scope);
    let mut samples: Vec<Samples> = shapes.iter().map(|_| Samples::default()).collect();
    for round in 0..scope.rounds {
        for (shape, samples) in shapes.iter().zip(&mut samples) {
            for side in order(&Side::WRITES, round) {
                let ops = (lab.pool.size() / 2 / shape.bs).min(if scope.quick { 20_000 } else { OPS });
                let seconds = if scope.quick { 0.5 } else { 1.5 };
                let limits = [
                    ("--size", FILE_BYTES.to_string()),
                    ("--ops", ops.to_string()),
                    ("--seconds", seconds.to_string()),
                ];
                samples.add(side, measure(lab, side, *shape, "write", &limits, round)?);
            }
        }
    }
    let rows: Result<Vec<Fields>> =
        shapes.iter().zip(&samples).map(|(shape, samples)| row(*shape, samples)).collect();
    let table = table(&shapes, &samples, lab.medium())?;
    Ok((rows?, table))
}

fn row(shape: Shape, samples: &Samples) -> Result<Fields> {
    let mut row = Fields::default()
        .with("bs", shape.bs)
        .with("pattern", word(shape.pattern))
        .with("threads", shape.threads)
        .with("processes", shape.processes);
    let p50 = |side| samples.latency(side, |l| l.p50_us);
    for side in SIDES {
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
            seawall.told(short),
            fs.told(short),
            floor.told(short),
            p50(Side::Eatmydata)?.told(short),
            format!("{}×", short(fs.median / seawall.median)),
            short(seawall.median / floor.median),
        ]);
    }
    Ok(format!("{}  seawall on: {medium}\n", table::format(&header, &rows)))
}

#[cfg(test)]
mod tests {
    use super::super::measure::tests::samples;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() -> Result<()> {
        for shape in shapes(Scope { quick: true, rounds: 1, pool: 0 }) {
            row(shape, &samples())?.assert_keys(super::super::keys::WRITE);
        }
        Ok(())
    }
}
