//! How a period went: activity by wait class, CPU, disks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::elapsed::passed;
use super::machine::{cpu_shares, disk};
use crate::delta::Deltas;
use crate::model::Snapshot;
use crate::names;
use crate::repository::Samples;

/// How a period went.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// Sessions in a statement, on average, by wait class: seconds since the beginning, and series.
    pub activity: (Vec<f64>, Vec<(String, Vec<f64>)>),
    /// Percent of CPU time by state.
    pub cpu: (Vec<f64>, Vec<(String, Vec<f64>)>),
    /// Percent of the time in which a disk was busy.
    pub disks: (Vec<f64>, Vec<(String, Vec<f64>)>),
}

/// More points than a chart is wide do not help.
const POINTS: i64 = 120;
const DISKS: usize = 5;

type Series = (Vec<f64>, Vec<(String, Vec<f64>)>);

/// All three.
pub fn timeline(snapshots: &[Snapshot], samples: &Samples) -> Timeline {
    let (cpu, disks) = machine(snapshots);
    Timeline { activity: activity(samples), cpu, disks }
}

/// Sessions in a statement by class, averaged over slices of the time.
fn activity(samples: &Samples) -> Series {
    let (Some(first), Some(last)) = (samples.ticks.first(), samples.ticks.last()) else {
        return Series::default();
    };
    let slice = ((last - first) / POINTS).max(1000);
    // The rest behind the last whole slice belongs to that: a few seconds alone would stand out as a spike.
    let slots = (((last - first) / slice) as usize).max(1);
    let slot = |at: i64| (((at - first) / slice) as usize).min(slots - 1);
    let mut ticks = vec![0.0; slots];
    samples.ticks.iter().for_each(|at| ticks[slot(*at)] += 1.0);
    let mut classes: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for sample in samples.samples.iter().filter(|s| s.foreground && (*first..=*last).contains(&s.at_ms)) {
        let class = names::sampled(&sample.wait_type, &sample.wait_event).class;
        classes.entry(class).or_insert_with(|| vec![0.0; slots])[slot(sample.at_ms)] +=
            f64::from(sample.sessions);
    }
    let average = |values: Vec<f64>| {
        values.iter().zip(&ticks).map(|(v, n)| if *n > 0.0 { v / n } else { 0.0 }).collect()
    };
    let mut series: Vec<_> = classes.into_iter().map(|(class, values)| (class.to_owned(), values)).collect();
    // CPU at the bottom, then what takes most.
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    series.sort_by(|a, b| (b.0 == "CPU").cmp(&(a.0 == "CPU")).then(sum(&b.1).total_cmp(&sum(&a.1))));
    let seconds = (0..slots).map(|i| (i as i64 * slice) as f64 / 1000.0).collect();
    (seconds, series.into_iter().map(|(class, values)| (class, average(values))).collect())
}

fn machine(snapshots: &[Snapshot]) -> (Series, Series) {
    let step = snapshots.len().div_ceil(POINTS as usize + 1).max(1);
    let chosen: Vec<Snapshot> = snapshots.iter().step_by(step).cloned().collect();
    let (mut now, mut seconds) = (0.0, Vec::new());
    let mut cpu: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut disks: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (i, pair) in chosen.windows(2).enumerate() {
        let passed = passed(&pair[0].at, &pair[1].at);
        let deltas = Deltas::over(pair);
        now += passed;
        seconds.push(now);
        let ticks = deltas.of("cpu").next().map(|(_, d)| d.counters.clone()).unwrap_or_default();
        for (state, share) in cpu_shares(&ticks).into_iter().filter(|(state, _)| state != "idle") {
            cpu.entry(state).or_default().push(share);
        }
        for (name, delta) in deltas.of("disk") {
            let values = disks.entry(name.into()).or_default();
            values.resize(i, 0.0);
            values.push(disk(name, delta, passed.max(0.001)).util);
        }
    }
    let points = seconds.len();
    // A line needs two points.
    if points < 2 {
        return <(Series, Series)>::default();
    }
    let mut disks: Vec<_> = disks.into_iter().collect();
    disks.iter_mut().for_each(|(_, values)| values.resize(points, 0.0));
    disks.sort_by(|a, b| b.1.iter().sum::<f64>().total_cmp(&a.1.iter().sum::<f64>()));
    disks.truncate(DISKS);
    let order = ["user", "system", "iowait", "steal"];
    let cpu = order.iter().filter_map(|state| Some(((*state).to_owned(), cpu.remove(*state)?))).collect();
    ((seconds.clone(), cpu), (seconds, disks))
}
