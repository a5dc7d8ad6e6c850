//! `block`: the log on a block device, on the same disk as the bare file system that it is compared with.
//!
//! What persistent memory gives is not to be had there: a commit waits for the device. What is measured is what sharing
//! a device write is worth when many commit at once, and that one alone pays no more than without Seawall. Writing
//! processes stand for a database's backends. The write load is that of [`super::write`].

use anyhow::Result;
use seawall_load::write::Pattern;

use super::measure::{Measured, Shape, describe, key, measure, ops_s, p50_us, with_shape};
use super::runs::Runs;
use super::{Fields, Scope, SectionResult};
use crate::lab::Lab;
use crate::side::{Side, order};
use crate::table::{self, short};

const SIDES: [Side; 3] = [Side::Fs, Side::Seawall, Side::Unsafe];
const BLOCK_BYTES: u64 = 8192;
/// What is appended, at most, and more than the log takes in a run; and what is overwritten.
const APPENDED_BYTES: u64 = 512 << 20;
const FILE_BYTES: u64 = 128 << 20;
/// Bytes of the pool in memory unless asked for otherwise; the log on the disk is three times as long. A run has to
/// last a second: sixteen processes differ by a factor of two in their first tenths of one.
pub const POOL: u64 = 1 << 30;

fn shapes(scope: Scope) -> Vec<Shape> {
    let all = if scope.quick { vec![1, 16] } else { vec![1, 2, 4, 8, 16] };
    let shared = |processes, pattern| Shape::shared(BLOCK_BYTES, pattern, 1, processes);
    let one = all.into_iter().map(|processes| shared(processes, Pattern::Append));
    let a_file_each = Shape { private: true, ..shared(16, Pattern::Append) };
    one.chain([shared(1, Pattern::Random), shared(16, Pattern::Random), a_file_each]).collect()
}

/// What the log and the files take.
pub fn space(scope: Scope) -> u64 {
    4 * scope.pool + (2 * APPENDED_BYTES + FILE_BYTES) * SIDES.len() as u64
}

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    shapes(scope).len() * scope.rounds * SIDES.len()
}

/// One run: what the load says, and how many device writes each record of the log took, those of the warm-up included.
struct Run {
    measured: Measured,
    device_writes: f64,
}

/// Measures everything. The lab's pool is the one on the disk.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let mut rows = Vec::new();
    let mut lines = Vec::new();
    for shape in shapes(scope) {
        let mut runs = Runs::default();
        for round in 0..scope.rounds {
            for side in order(&SIDES, round) {
                runs.add(side, one(lab, side, shape, scope, round)?);
            }
        }
        rows.push(fields(&shape, &runs));
        lines.push(line(&shape, &runs));
    }
    let header =
        ["write + fdatasync", "seawall /s", "fs sync /s", "fs no sync /s", "speedup", "device writes"];
    let table = table::format(&header, &lines);
    Ok((rows, format!("{table}  seawall on: {}; device writes for each record\n", lab.medium())))
}

fn one(lab: &Lab, side: Side, shape: Shape, scope: Scope, round: usize) -> Result<Run> {
    // Of all processes together: before the log is half full, and destaging begins.
    let ops = scope.pool / 8 * 3 / shape.bs;
    let seconds = if scope.quick { 0.5 } else { 2.0 };
    let size = if shape.pattern == Pattern::Append { APPENDED_BYTES } else { FILE_BYTES };
    let limits = [("--ops", ops.to_string()), ("--seconds", seconds.to_string())];
    let log = || -> Result<(u64, u64)> {
        if side == Side::Seawall { Ok((lab.pool.last_batch()?, lab.pool.last_lsn()?)) } else { Ok((0, 0)) }
    };
    let before = log()?;
    let measured = measure(lab, side, shape, "block", (size, &limits), round)?;
    let after = log()?;
    let (batches, records) = (after.0 - before.0, after.1 - before.1);
    Ok(Run { measured, device_writes: batches as f64 / records.max(1) as f64 })
}

fn rate(run: &Run) -> f64 {
    ops_s(&run.measured)
}

fn fields(shape: &Shape, runs: &Runs<Side, Run>) -> Fields {
    let row =
        with_shape(Fields::default(), shape).with("files", if shape.private { shape.processes } else { 1 });
    let row = runs.with_figures(row, &SIDES, key, &[("us", |run| p50_us(&run.measured)), ("ops_s", rate)]);
    runs.with_ratios(row, rate, &[("speedup", Side::Seawall, Side::Fs)])
        .with_spread("device_writes", runs.spread(Side::Seawall, |run| run.device_writes))
}

fn line(shape: &Shape, runs: &Runs<Side, Run>) -> Vec<String> {
    let mut line = vec![describe(shape)];
    line.extend([Side::Seawall, Side::Fs, Side::Unsafe].map(|side| runs.told(side, rate)));
    let speedup = runs.ratio(Side::Seawall, Side::Fs, rate).map_or(f64::NAN, |ratio| ratio.median);
    line.push(format!("{}×", short(speedup)));
    line.push(short(runs.median(Side::Seawall, |run| run.device_writes)));
    line
}

#[cfg(test)]
mod tests {
    use super::super::measure::tests::nothing;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        let shape = shapes(Scope { quick: true, rounds: 1, pool: 0 })[0];
        let mut runs = Runs::default();
        SIDES.into_iter().for_each(|side| runs.add(side, Run { measured: nothing(), device_writes: 1.0 }));
        fields(&shape, &runs).assert_keys("block");
    }
}
