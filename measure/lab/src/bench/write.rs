//! `write_fdatasync`: the latency of making one write durable, as a distribution.
//!
//! One operation is the pair pwrite + fdatasync; `X_us` is the median over rounds of a run's p50. A
//! run writes at most half a pool, so that it measures the log and not what happens when it is full
//! (that is [`super::sustained`]).

use anyhow::Result;
use seawall_load::write::Pattern;

use super::measure::{SIDES, Samples, Shape, describe, measure, p50_us, with_distributions, with_shape};
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

/// What the files take: one for each pattern, side and block size.
pub fn space() -> u64 {
    FILE_BYTES * 3 * Side::WRITES.len() as u64 * BLOCK_BYTES.len() as u64
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
                let limits = [("--ops", ops.to_string()), ("--seconds", seconds.to_string())];
                samples.add(side, measure(lab, side, *shape, "write", (FILE_BYTES, &limits), round)?);
            }
        }
    }
    let measured = || shapes.iter().zip(&samples);
    let rows = measured().map(|(shape, samples)| row(shape, samples)).collect();
    let lines: Vec<_> = measured().map(|(shape, samples)| line(shape, samples)).collect();
    let table = table::format(&HEADER, &lines);
    Ok((rows, format!("{table}  seawall on: {}\n", lab.medium())))
}

fn row(shape: &Shape, samples: &Samples) -> Fields {
    with_distributions(with_shape(Fields::default(), shape), samples, p50_us)
}

const HEADER: [&str; 7] =
    ["write + fdatasync, p50 µs", "seawall", "fs sync", "fs no sync", "eatmydata", "speedup", "over floor"];

fn line(shape: &Shape, samples: &Samples) -> Vec<String> {
    let [seawall, fs, floor] =
        [Side::Seawall, Side::Fs, Side::Unsafe].map(|side| samples.median(side, p50_us));
    let mut line = vec![describe(shape)];
    line.extend(SIDES.map(|side| samples.told(side, p50_us)));
    line.extend([format!("{}×", short(fs / seawall)), short(seawall / floor)]);
    line
}

#[cfg(test)]
mod tests {
    use super::super::measure::tests::samples;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        for shape in shapes(Scope { quick: true, rounds: 1, pool: 0 }) {
            row(&shape, &samples()).assert_keys("write_fdatasync");
        }
    }
}
