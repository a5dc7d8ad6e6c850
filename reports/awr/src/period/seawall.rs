//! Seawall's part of a period.

use std::collections::BTreeMap;

use super::elapsed::intervals;
use super::figures::{File, Seawall, Wait};
use crate::delta::{Delta, Deltas};
use crate::model::Snapshot;
use crate::seawall::{fill, quantile};

const FILES: usize = 30;

/// What Seawall measured, if it was there.
pub fn part(snapshots: &[Snapshot], deltas: &Deltas) -> Option<Seawall> {
    let (_, log) = deltas.of("seawall").next()?;
    let fact = |name| log.fact(name);
    let (classes, files) = files(deltas);
    Some(Seawall {
        medium: fact("medium"),
        medium_name: fact("medium_name"),
        because: fact("because"),
        pool: fact("pool"),
        log: log.gauges.clone(),
        waits: deltas.of("seawall event").map(Wait::counted).filter(|w| w.count > 0.0).collect(),
        class_waits: deltas.of("seawall class event").map(class_wait).filter(|w| w.count > 0.0).collect(),
        fill: fill(&log.counters),
        logged_peak: peak(snapshots),
        classes,
        files,
    })
}

/// Bytes a second that were logged in the busiest interval between two snapshots.
fn peak(snapshots: &[Snapshot]) -> f64 {
    let rates = intervals(snapshots)
        .filter_map(|(_, deltas, passed)| Some(deltas.sum("seawall file", "bytes")? / passed));
    rates.fold(0.0, f64::max)
}

fn class_wait((item, delta): (&str, &Delta)) -> Wait {
    Wait { name: delta.fact("event"), class: delta.fact("class"), ..Wait::counted((item, delta)) }
}

fn files(deltas: &Deltas) -> (Vec<File>, Vec<File>) {
    let mut classes: BTreeMap<String, File> = BTreeMap::new();
    let mut files = Vec::new();
    for (_, delta) in deltas.of("seawall file").filter(|(_, d)| d.counters.values().any(|n| *n > 0.0)) {
        let fact = |name| delta.fact(name);
        let class =
            classes.entry(fact("class")).or_insert_with(|| File { name: fact("class"), ..File::default() });
        delta.counters.iter().for_each(|(name, n)| *class.counters.entry(name.clone()).or_default() += n);
        *class.counters.entry("files".into()).or_default() += 1.0;
        files.push(File { name: fact("path"), counters: delta.counters.clone() });
    }
    let bytes = |file: &File| file.counters.get("bytes").copied().unwrap_or(0.0);
    files.sort_by(|a, b| bytes(b).total_cmp(&bytes(a)));
    files.truncate(FILES);
    (classes.into_values().collect(), files)
}

impl Wait {
    /// The lower border, in ns, of the bucket that holds quantile `q` (0 to 1) of the timed waits.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        quantile(&self.buckets, q)
    }

    /// Mean, in ns.
    pub fn mean_ns(&self) -> f64 {
        if self.count > 0.0 { self.time_s * 1e9 / self.count } else { 0.0 }
    }
}
