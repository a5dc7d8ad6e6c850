//! Databases side by side: bare file system, Seawall, unsafe bound, and for benchmarks the unsafe bound once
//! more. Demo and bench share this.
//!
//! Rounds are interleaved and rotated (A B C, B C A, …). Before each run: an explicit checkpoint
//! (PostgreSQL), everything drained and synced to disk, equally on all sides.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use seawall_load::sqlite::Journal;
use serde::{Deserialize, Serialize};

use crate::lab::Lab;
use crate::pg::{self, Bench, Cluster, Measured, Template};
use crate::side::{Side, order};
use crate::spread::Spread;
use crate::sqlite;
use crate::table::thousands;
use crate::verdict::{self, Verdict};

/// One measure on every side, higher is better.
///
/// A ratio is formed within each round, of runs that followed each other within seconds, and its median is
/// taken: what the machine does from one minute to the next falls out of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Three {
    pub fs: Spread,
    pub seawall: Spread,
    /// Not durable.
    pub unsafe_bound: Spread,
    /// How many times the bare file system.
    pub speedup: Spread,
    /// Which part of the unsafe bound.
    pub of_unsafe: Spread,
    /// Which part of the unsafe bound an equal side reaches: what is not farther from 1 than this was not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<Spread>,
}

impl Three {
    /// Whether Seawall differs from the bare file system, by the lab's rule.
    pub fn verdict(&self, rounds: usize) -> Verdict {
        let noise = self.control.and_then(|control| verdict::noise(&control));
        Verdict::on(rounds, Some(self.speedup), noise, true)
    }
}

#[cfg(test)]
impl Three {
    /// Every figure is one.
    pub const ONE: Three = Three {
        fs: Spread::ONE,
        seawall: Spread::ONE,
        unsafe_bound: Spread::ONE,
        speedup: Spread::ONE,
        of_unsafe: Spread::ONE,
        control: None,
    };
    /// With a control.
    pub const CONTROLLED: Three = Three { control: Some(Spread::ONE), ..Three::ONE };
}

/// Values by side, one a round.
#[derive(Default)]
pub struct Samples(BTreeMap<Side, Vec<f64>>);

impl Samples {
    /// Adds the figure of one run.
    pub fn add(&mut self, side: Side, value: f64) {
        self.0.entry(side).or_default().push(value);
    }

    /// What the rounds say; an error if a side was never measured.
    pub fn three(&self) -> Result<Three> {
        let values = |side| self.0.get(&side).context("a side was never measured");
        let spread = |values: &[f64]| Spread::of(values).context("a side was never measured");
        let (fs, seawall, unsafe_bound) = (values(Side::Fs)?, values(Side::Seawall)?, values(Side::Unsafe)?);
        Ok(Three {
            fs: spread(fs)?,
            seawall: spread(seawall)?,
            unsafe_bound: spread(unsafe_bound)?,
            speedup: spread(&ratios(seawall, fs))?,
            of_unsafe: spread(&ratios(seawall, unsafe_bound))?,
            control: self.0.get(&Side::Control).and_then(|again| Spread::of(&ratios(again, unsafe_bound))),
        })
    }
}

/// Each round's ratio.
pub fn ratios(dividends: &[f64], divisors: &[f64]) -> Vec<f64> {
    dividends.iter().zip(divisors).map(|(dividend, divisor)| dividend / divisor).collect()
}

/// The sides' clusters, stopped.
pub struct Clusters<'a> {
    lab: &'a Lab,
    bin: &'a Path,
    sides: &'static [Side],
    data: BTreeMap<Side, PathBuf>,
}

impl<'a> Clusters<'a> {
    /// Creates them, all from one template.
    pub fn create(lab: &'a Lab, bin: &'a Path, sides: &'static [Side], scale: u32) -> Result<Self> {
        lab.progress.doing("PostgreSQL: initdb and pgbench -i");
        let template = Template::create(lab, bin, scale)?;
        let mut data = BTreeMap::new();
        for &side in sides {
            data.insert(side, template.copy_for(side)?);
        }
        template.remove()?;
        lab.settle()?;
        lab.progress.done(&format!("PostgreSQL: equal clusters, scale {scale}"));
        Ok(Clusters { lab, bin, sides, data })
    }

    /// A side's data directory.
    pub fn data(&self, side: Side) -> &Path {
        &self.data[&side]
    }

    /// Measures every shape on every side in every round. The servers run side by side, idle but one: so the
    /// sides take turns within seconds, and what else the machine does falls on all of them.
    pub fn measure(&self, shapes: &[Bench], rounds: usize) -> Result<Vec<(Bench, Three)>> {
        let mut samples: Vec<Samples> = shapes.iter().map(|_| Samples::default()).collect();
        let mut reported: BTreeMap<Side, u64> = BTreeMap::new();
        for round in 0..rounds {
            let clusters = self.start()?;
            for (shape, samples) in shapes.iter().zip(&mut samples) {
                for side in order(self.sides, round) {
                    let measured = self.measure_one(&clusters[&side], side, *shape, round)?;
                    samples.add(side, measured.tps);
                    *reported.entry(side).or_default() += measured.transactions;
                }
            }
            for (side, cluster) in clusters {
                if round + 1 == rounds {
                    pg::check_work(&cluster, reported[&side]).with_context(|| side.title())?;
                }
                cluster.stop()?;
            }
            self.lab.settle()?;
        }
        shapes.iter().zip(&samples).map(|(shape, samples)| Ok((*shape, samples.three()?))).collect()
    }

    fn start(&self) -> Result<BTreeMap<Side, Cluster<'a>>> {
        let start = |&side| Ok((side, Cluster::start(self.lab, self.bin, side, self.data(side))?));
        self.sides.iter().map(start).collect()
    }

    fn measure_one(&self, cluster: &Cluster, side: Side, shape: Bench, round: usize) -> Result<Measured> {
        let what = format!(
            "round {}: PostgreSQL {}, {}, {}",
            round + 1,
            shape.test.title(),
            shape.clients_in_words(),
            side.title()
        );
        self.lab.progress.doing(&what);
        cluster.sql("CHECKPOINT")?;
        self.lab.settle()?;
        let measured = shape.measure(cluster).with_context(|| what.clone())?;
        self.lab.progress.done(&format!("{what}: {} tps", thousands(measured.tps)));
        Ok(measured)
    }
}

/// What the clusters take on the disk, their WAL included.
pub fn postgres_space(sides: &[Side], scale: u32) -> u64 {
    ((u64::from(scale) * 16 + 600) << 20) * sides.len() as u64
}

/// How many progress steps [`Clusters::create`] and [`Clusters::measure`] take.
pub fn postgres_steps(sides: &[Side], shapes: usize, rounds: usize) -> usize {
    1 + shapes * rounds * sides.len()
}

/// Rates of every shape on every side in every round, for databases that begin empty: `measure` makes and
/// removes them.
pub fn rates<S>(
    lab: &Lab,
    database: &str,
    shapes: &[S],
    rounds: usize,
    title: impl Fn(&S) -> String,
    mut measure: impl FnMut(Side, &S) -> Result<f64>,
) -> Result<Vec<Three>> {
    let mut samples: Vec<Samples> = shapes.iter().map(|_| Samples::default()).collect();
    for round in 0..rounds {
        for (shape, samples) in shapes.iter().zip(&mut samples) {
            for side in order(&Side::CONTROLLED, round) {
                let what = format!("round {}: {database}, {}, {}", round + 1, title(shape), side.title());
                lab.progress.doing(&what);
                lab.settle()?;
                let rate = measure(side, shape).with_context(|| what.clone())?;
                lab.progress.done(&format!("{what}: {} a second", thousands(rate)));
                samples.add(side, rate);
            }
        }
    }
    samples.iter().map(Samples::three).collect()
}

/// How many progress steps [`rates`] takes.
pub fn steps(shapes: usize, rounds: usize) -> usize {
    shapes * rounds * Side::CONTROLLED.len()
}

/// Creates the SQLite databases of all sides. Returns SQLite's version.
pub fn create_sqlite(lab: &Lab, journals: &[Journal]) -> Result<String> {
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
            for side in order(&Side::CONTROLLED, round) {
                let journal = shape.journal.pragma();
                let what = format!("round {}: SQLite, {journal} journal, {}", round + 1, side.title());
                lab.progress.doing(&what);
                lab.settle()?;
                let report = sqlite::measure(lab, side, *shape).with_context(|| what.clone())?;
                lab.progress.done(&format!("{what}: {} tps", thousands(report.tps)));
                samples.add(side, report.tps);
                *reported.entry(side).or_default() += report.commits;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_that_of_runs_of_one_round() -> Result<()> {
        let mut samples = Samples::default();
        // A machine that slows down from round to round, and a side that is always nine tenths of another one.
        for speed in [300.0, 200.0, 100.0, 10.0] {
            samples.add(Side::Fs, speed / 2.0);
            samples.add(Side::Seawall, speed * 0.9);
            samples.add(Side::Unsafe, speed);
        }
        let three = samples.three()?;
        assert_eq!(three.of_unsafe, Spread { median: 0.9, min: 0.9, max: 0.9 });
        assert_eq!(three.speedup.median, 1.8);
        Ok(())
    }

    #[test]
    fn a_gain_is_judged_by_the_rounds_ratios_and_by_noise_not_by_ranges() -> Result<()> {
        let judged = |control: f64| -> Result<Verdict> {
            let mut samples = Samples::default();
            for speed in [300.0, 200.0, 100.0] {
                samples.add(Side::Fs, speed);
                samples.add(Side::Seawall, speed * 1.8);
                samples.add(Side::Unsafe, speed * 2.0);
                samples.add(Side::Control, speed * 2.0 * control);
            }
            Ok(samples.three()?.verdict(3))
        };
        // The ranges overlap: 180 to 540, and 100 to 300.
        assert_eq!(judged(0.97)?, Verdict::Better);
        assert_eq!(judged(0.5)?, Verdict::NoDifference);
        assert_eq!(Three::ONE.verdict(3), Verdict::NoControl);
        assert_eq!(Three::CONTROLLED.verdict(1), Verdict::Single);
        Ok(())
    }
}
