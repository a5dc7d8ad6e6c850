//! PostgreSQL's clusters, one a side.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Samples, Three, Work, in_turns};
use crate::lab::Lab;
use crate::pg::{self, Bench, Cluster, Template};
use crate::side::Side;
use crate::table::thousands;

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

    /// Measures every shape on every side in every round. The servers run side by side, idle but one, so that the
    /// sides can take turns.
    pub fn measure(&self, shapes: &[Bench], rounds: usize) -> Result<Vec<(Bench, Three)>> {
        let mut samples: Vec<Samples> = shapes.iter().map(|_| Samples::default()).collect();
        let mut reported: BTreeMap<Side, u64> = BTreeMap::new();
        for round in 0..rounds {
            let clusters = self.start()?;
            for (shape, samples) in shapes.iter().zip(&mut samples) {
                for (side, work) in self.round(&clusters, *shape, round)? {
                    samples.add(side, work.rate);
                    *reported.entry(side).or_default() += work.count;
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

    /// One round of a shape, after a checkpoint on every side.
    fn round(
        &self,
        clusters: &BTreeMap<Side, Cluster<'_>>,
        shape: Bench,
        round: usize,
    ) -> Result<BTreeMap<Side, Work>> {
        let progress = &self.lab.progress;
        let what =
            format!("round {}: PostgreSQL {}, {}", round + 1, shape.test.title(), shape.clients_in_words());
        clusters.values().try_for_each(|cluster| cluster.sql("CHECKPOINT"))?;
        let (slices, one) = shape.slices();
        let done = in_turns(self.sides, round, slices, |side| {
            progress.doing(&format!("{what}, {}", side.title()));
            self.lab.settle()?;
            let measured =
                one.measure(&clusters[&side]).with_context(|| format!("{what}, {}", side.title()))?;
            Ok(Work { rate: measured.tps, count: measured.transactions })
        })?;
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
