//! `block`: the log on a block device, on the same disk as the bare file system that it is compared with.
//!
//! What persistent memory gives is not to be had there: a commit waits for the device. What is measured is what sharing
//! a device write is worth when many commit at once, and that one alone pays no more than without Seawall. Writing
//! processes stand for a database's backends. The write load is that of [`super::write`].

use anyhow::Result;
use seawall_load::write::Pattern;

use super::measure::{Measured, Shape, describe, key, measure};
use super::{Fields, Scope, SectionResult};
use crate::lab::Lab;
use crate::side::{Side, order};
use crate::spread::Spread;
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
        let mut runs: Vec<(Side, Run)> = Vec::new();
        for round in 0..scope.rounds {
            for side in order(&SIDES, round) {
                runs.push((side, one(lab, side, shape, scope, round)?));
            }
        }
        let row = Row::of(shape, &runs)?;
        rows.push(row.fields());
        lines.push(row.line());
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
    let limits =
        [("--size", size.to_string()), ("--ops", ops.to_string()), ("--seconds", seconds.to_string())];
    let log = || -> Result<(u64, u64)> {
        if side == Side::Seawall { Ok((lab.pool.last_batch()?, lab.pool.last_lsn()?)) } else { Ok((0, 0)) }
    };
    let before = log()?;
    let measured = measure(lab, side, shape, "block", &limits, round)?;
    let after = log()?;
    let (batches, records) = (after.0 - before.0, after.1 - before.1);
    Ok(Run { measured, device_writes: batches as f64 / records.max(1) as f64 })
}

/// The figures of one shape.
struct Row {
    shape: Shape,
    rates: [Spread; 3],
    p50: [Spread; 3],
    writes: Spread,
    speedup: Spread,
}

impl Row {
    fn of(shape: Shape, runs: &[(Side, Run)]) -> Result<Self> {
        let of = |side: Side, figure: &dyn Fn(&Run) -> f64| {
            let values: Vec<f64> =
                runs.iter().filter(|(s, _)| *s == side).map(|(_, run)| figure(run)).collect();
            anyhow::Context::context(Spread::of(&values), "a side was never measured")
        };
        let rate = |side| of(side, &|run| run.measured.report.ops_per_s);
        let p50 = |side| of(side, &|run| run.measured.report.latency.p50_us);
        let rates_of = |side: Side| -> Vec<f64> {
            runs.iter().filter(|(s, _)| *s == side).map(|(_, run)| run.measured.report.ops_per_s).collect()
        };
        let ratios: Vec<f64> = rates_of(Side::Seawall)
            .iter()
            .zip(rates_of(Side::Fs))
            .map(|(seawall, fs)| seawall / fs)
            .collect();
        Ok(Self {
            shape,
            rates: [rate(Side::Fs)?, rate(Side::Seawall)?, rate(Side::Unsafe)?],
            p50: [p50(Side::Fs)?, p50(Side::Seawall)?, p50(Side::Unsafe)?],
            writes: of(Side::Seawall, &|run| run.device_writes)?,
            speedup: anyhow::Context::context(Spread::of(&ratios), "a side was never measured")?,
        })
    }

    fn fields(&self) -> Fields {
        let mut row = Fields::default()
            .with("bs", self.shape.bs)
            .with("pattern", super::measure::word(self.shape.pattern))
            .with("threads", self.shape.threads)
            .with("processes", self.shape.processes)
            .with("files", if self.shape.private { self.shape.processes } else { 1 });
        for (side, (rate, p50)) in SIDES.iter().zip(self.rates.iter().zip(&self.p50)) {
            row = row
                .with_spread(&format!("{}_us", key(*side)), *p50)
                .with_spread(&format!("{}_ops_s", key(*side)), *rate);
        }
        row.with_spread("speedup", self.speedup).with_spread("device_writes", self.writes)
    }

    fn line(&self) -> Vec<String> {
        let [fs, seawall, floor] = &self.rates;
        vec![
            describe(&self.shape),
            seawall.told(short),
            fs.told(short),
            floor.told(short),
            format!("{}×", short(self.speedup.median)),
            short(self.writes.median),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::measure::tests::nothing;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() -> Result<()> {
        let shape = shapes(Scope { quick: true, rounds: 1, pool: 0 })[0];
        let runs: Vec<_> =
            SIDES.map(|side| (side, Run { measured: nothing(), device_writes: 1.0 })).into_iter().collect();
        Row::of(shape, &runs)?.fields().assert_keys(super::super::keys::BLOCK);
        Ok(())
    }
}
