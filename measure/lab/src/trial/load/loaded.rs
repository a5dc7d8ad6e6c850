//! What a load did, and where it notes what was acknowledged.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

use crate::case::Measure;
use crate::lab::Lab;
use crate::pg::transactions::Transaction;

/// What a load did.
pub struct Loaded {
    pub commits: u64,
    /// Measures that it knows itself.
    pub figures: Vec<(Measure, f64)>,
}

impl Loaded {
    /// What several did at once: commits and rates together, of everything else the worst.
    pub fn together(all: Vec<Self>) -> Self {
        let mut sum = Loaded { commits: 0, figures: Vec::new() };
        for one in all {
            sum.commits += one.commits;
            for (measure, value) in one.figures {
                match sum.figures.iter_mut().find(|(known, _)| *known == measure) {
                    Some((_, rate)) if measure == Measure::Throughput => *rate += value,
                    Some((_, worst)) => *worst = worst.max(value),
                    None => sum.figures.push((measure, value)),
                }
            }
        }
        sum
    }

    /// From each transaction's end and duration.
    pub fn of(done: &[Transaction]) -> Result<Self> {
        let mut took: Vec<u64> = done.iter().map(|t| t.took_us).collect();
        took.sort_unstable();
        let first = done.iter().map(|t| t.ended_us - t.took_us.min(t.ended_us)).min();
        let last = done.iter().map(|t| t.ended_us).max();
        let (Some(first), Some(last), Some(longest)) = (first, last, took.last()) else {
            anyhow::bail!("the load committed nothing");
        };
        let lasted = ((last - first) as f64 / 1e6).max(0.001);
        let p99 = took[(took.len() * 99 / 100).min(took.len() - 1)];
        Ok(Loaded {
            commits: done.len() as u64,
            figures: vec![
                (Measure::Throughput, done.len() as f64 / lasted),
                (Measure::LatencyP99, p99 as f64 / 1e3),
                (Measure::Longest, *longest as f64 / 1e3),
            ],
        })
    }
}

/// A configuration's ledger begins as that of the tables it has a copy of.
pub fn copy_ledger(lab: &Lab, configuration: &str) -> Result<()> {
    let from = ledger(lab, None);
    if from.exists() {
        let to = ledger(lab, Some(configuration));
        fs::copy(from, &to)?;
        lab.identity.own(&to)?;
    }
    Ok(())
}

/// Where what was acknowledged is noted.
pub fn ledger(lab: &Lab, configuration: Option<&str>) -> PathBuf {
    lab.work.log(&format!("load-{}.ledger", configuration.unwrap_or("template")))
}
