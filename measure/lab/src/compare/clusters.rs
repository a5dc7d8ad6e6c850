//! PostgreSQL's clusters, one a side.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Samples, Three, Work};
use crate::lab::Lab;
use crate::pg::{self, Bench, Cluster, Template};
use crate::side::Side;
use crate::table::thousands;

/// The sides' clusters, stopped: equal copies, which change hands from round to round, since two copies are never quite
/// as fast as each other.
pub struct Clusters<'a> {
    lab: &'a Lab,
    bin: &'a Path,
    sides: &'static [Side],
    copies: Vec<PathBuf>,
}

impl<'a> Clusters<'a> {
    /// Creates them, all from one template.
    pub fn create(lab: &'a Lab, bin: &'a Path, sides: &'static [Side], scale: u32) -> Result<Self> {
        lab.progress.doing("PostgreSQL: initdb and pgbench -i");
        let template = Template::create(lab, bin, scale)?;
        let copies = sides.iter().map(|side| template.copy_for(*side)).collect::<Result<_>>()?;
        template.remove()?;
        lab.settle()?;
        lab.progress.done(&format!("PostgreSQL: equal clusters, scale {scale}"));
        Ok(Clusters { lab, bin, sides, copies })
    }

    /// Which copy is a side's in this round.
    fn copy(&self, nth: usize, round: usize) -> usize {
        (nth + round) % self.copies.len()
    }

    /// One of the data directories, for what comes after.
    pub fn data(&self) -> &Path {
        &self.copies[0]
    }

    /// Measures every shape on every side in every round. The servers run side by side, idle but one, so that the
    /// sides can take turns.
    pub fn measure(&self, shapes: &[Bench], rounds: usize) -> Result<Vec<(Bench, Three)>> {
        let mut samples: Vec<Samples> = shapes.iter().map(|_| Samples::default()).collect();
        let mut reported = vec![0; self.copies.len()];
        for round in 0..rounds {
            let clusters = self.start(round)?;
            let mut counts: BTreeMap<Side, u64> = BTreeMap::new();
            for (shape, samples) in shapes.iter().zip(&mut samples) {
                for (side, work) in self.round(&clusters, *shape, round)? {
                    samples.add(side, work.rate);
                    *counts.entry(side).or_default() += work.count;
                }
            }
            for (nth, side) in self.sides.iter().enumerate() {
                let reported = &mut reported[self.copy(nth, round)];
                *reported += counts[side];
                pg::check_work(&clusters[side], *reported).with_context(|| side.title())?;
            }
            clusters.into_values().try_for_each(Cluster::stop)?;
            self.lab.settle()?;
        }
        shapes.iter().zip(&samples).map(|(shape, samples)| Ok((*shape, samples.three()?))).collect()
    }

    fn start(&self, round: usize) -> Result<BTreeMap<Side, Cluster<'a>>> {
        let data = |nth| &self.copies[self.copy(nth, round)];
        let start = |(nth, &side)| Ok((side, Cluster::start(self.lab, self.bin, side, data(nth))?));
        self.sides.iter().enumerate().map(start).collect()
    }

    /// One round of a shape.
    fn round(
        &self,
        clusters: &BTreeMap<Side, Cluster<'_>>,
        shape: Bench,
        round: usize,
    ) -> Result<BTreeMap<Side, Work>> {
        let progress = &self.lab.progress;
        let what =
            format!("round {}: PostgreSQL {}, {}", round + 1, shape.test.title(), shape.clients_in_words());
        progress.doing(&what);
        self.lab.settle()?;
        let done = shape.in_turns(clusters, self.sides, round).with_context(|| what.clone())?;
        for (side, work) in &done {
            progress.done(&format!("{what}, {}: {} tps", side.title(), thousands(work.rate)));
        }
        Ok(done)
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
