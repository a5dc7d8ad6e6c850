//! SQLite, a database a side and journal mode.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use seawall_load::sqlite::JournalMode;

use super::{Samples, Three, Work, in_turns};
use crate::lab::Lab;
use crate::side::Side;
use crate::sqlite;
use crate::table::thousands;

/// Creates the SQLite databases of all sides. Returns SQLite's version.
pub fn create_sqlite(lab: &Lab, journals: &[JournalMode]) -> Result<String> {
    let mut version = String::new();
    for journal in journals {
        for side in Side::CONTROLLED {
            version = sqlite::create(lab, side, *journal)?;
        }
    }
    Ok(version)
}

/// Measures SQLite on every side in every round.
pub fn measure_sqlite(
    lab: &Lab,
    shapes: &[sqlite::Shape],
    rounds: usize,
) -> Result<Vec<(sqlite::Shape, Three)>> {
    let mut samples: Vec<Samples> = shapes.iter().map(|_| Samples::default()).collect();
    let mut reported: Vec<BTreeMap<Side, u64>> = vec![BTreeMap::new(); shapes.len()];
    for round in 0..rounds {
        for ((shape, samples), reported) in shapes.iter().zip(&mut samples).zip(&mut reported) {
            let what = format!("round {}: SQLite, {} journal", round + 1, shape.journal.pragma());
            let (slices, one) = shape.slices();
            let done = in_turns(&Side::CONTROLLED, round, slices, |side| {
                lab.progress.doing(&format!("{what}, {}", side.title()));
                lab.settle()?;
                let report =
                    sqlite::measure(lab, side, one).with_context(|| format!("{what}, {}", side.title()))?;
                Ok(Work { rate: report.tps, count: report.commits })
            })?;
            for (side, work) in done {
                lab.progress.done(&format!("{what}, {}: {} tps", side.title(), thousands(work.rate)));
                samples.add(side, work.rate);
                *reported.entry(side).or_default() += work.count;
            }
        }
    }
    for (shape, reported) in shapes.iter().zip(&reported) {
        for (side, commits) in reported {
            sqlite::check_work(lab, *side, shape.journal, *commits).with_context(|| side.title())?;
        }
    }
    shapes.iter().zip(&samples).map(|(shape, samples)| Ok((*shape, samples.three()?))).collect()
}

/// How many progress steps [`measure_sqlite`] takes.
pub fn sqlite_steps(shapes: usize, rounds: usize) -> usize {
    shapes * rounds * Side::CONTROLLED.len()
}
