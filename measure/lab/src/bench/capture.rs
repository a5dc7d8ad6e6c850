//! `capture`: what `seawall snap --every` costs the database it captures.
//!
//! PostgreSQL with `fsync=off`, so that CPUs are the limit and whatever capturing takes is missing elsewhere;
//! pgbench's simple-update, alternately with and without. Snapshots come twelve times as often as the manual
//! suggests. Throughput is as noisy as the machine is, so what the recorder and its session in the server take of
//! a processor is counted as well.

use std::path::Path;

use anyhow::{Context, Result};

use super::snap::{Costs, Snap};
use super::{Fields, Scope, SectionResult};
use crate::lab::Lab;
use crate::pg::{Bench, Cluster, Template, Test};
use crate::side::Side;
use crate::spread::Spread;
use crate::table::{self, short, thousands};
use crate::tools::postgres_bin;

const SCALE: u32 = 8;
const CLIENTS: usize = 4;
/// Seconds between two snapshots.
const EVERY: u64 = 5;
/// What the cluster takes on the disk, with its WAL.
pub const SPACE: u64 = 3 << 30;

fn seconds(scope: Scope) -> u64 {
    if scope.quick { EVERY + 1 } else { 6 * EVERY }
}

/// How many steps the section takes.
pub fn steps(scope: Scope) -> usize {
    1 + 2 * scope.rounds
}

/// What the rounds gave.
#[derive(Default)]
struct Figures {
    without: Vec<f64>,
    with: Vec<f64>,
    kept: Vec<f64>,
    snapshot_ms: Vec<f64>,
    recorder_percent: Vec<f64>,
    server_percent: Vec<f64>,
}

/// The section.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let bin = postgres_bin()?;
    lab.progress.doing("capture: initdb and pgbench -i");
    let data = Template::create(lab, &bin, SCALE)?.into_data();
    lab.progress.done(&format!("capture: a cluster, scale {SCALE}"));
    let mut figures = Figures::default();
    for round in 0..scope.rounds {
        let mut tps = [0.0; 2];
        // Which goes first changes, as everywhere in the lab.
        for captured in if round % 2 == 0 { [false, true] } else { [true, false] } {
            let what =
                format!("round {}: PostgreSQL, {}", round + 1, if captured { "captured" } else { "alone" });
            lab.progress.doing(&what);
            let (rate, costs) =
                measure(lab, &bin, &data, seconds(scope), captured).with_context(|| what.clone())?;
            lab.progress.done(&format!("{what}: {} tps", thousands(rate)));
            tps[usize::from(captured)] = rate;
            if let Some(costs) = costs {
                figures.snapshot_ms.extend(costs.snapshots_ms);
                figures.recorder_percent.push(costs.recorder_percent);
                figures.server_percent.push(costs.server_percent);
            }
        }
        figures.without.push(tps[0]);
        figures.with.push(tps[1]);
        figures.kept.push(tps[1] / tps[0]);
    }
    std::fs::remove_dir_all(data)?;
    figures.result()
}

/// Transactions a second, and what capturing cost.
fn measure(lab: &Lab, bin: &Path, data: &Path, seconds: u64, captured: bool) -> Result<(f64, Option<Costs>)> {
    let cluster = Cluster::start(lab, bin, Side::Unsafe, data)?;
    cluster.sql("CHECKPOINT")?;
    lab.settle()?;
    let snap = captured.then(|| Snap::start(lab, &cluster, EVERY, seconds)).transpose()?;
    let measured = Bench { test: Test::SimpleUpdate, clients: CLIENTS, seconds }.measure(&cluster)?;
    let costs = snap.map(|snap| snap.costs(&cluster)).transpose()?;
    cluster.stop()?;
    Ok((measured.tps, costs))
}

impl Figures {
    fn result(&self) -> Result<SectionResult> {
        let spread = |values: &[f64]| Spread::of(values).context("no rounds");
        let all = [
            &self.without,
            &self.with,
            &self.kept,
            &self.snapshot_ms,
            &self.recorder_percent,
            &self.server_percent,
        ];
        let [a, b, c, d, e, f] = all.map(|values| spread(values));
        let [without, with, kept, snapshot_ms, recorder, server] = [a?, b?, c?, d?, e?, f?];
        let cell = |s: Spread| s.told(thousands);
        let ratio = |s: Spread| s.told(short);
        let line = vec![
            "simple-update, 4 clients".into(),
            cell(without),
            cell(with),
            ratio(kept),
            ratio(snapshot_ms),
            ratio(recorder),
            ratio(server),
        ];
        let header = [
            "Capture, tps",
            "alone",
            "captured",
            "of alone",
            "CPU of a snapshot, ms",
            "recorder, % of a core",
            "its session in the server",
        ];
        let row = row([without, with, kept, snapshot_ms, recorder, server]);
        Ok((vec![row], format!("{}\n", table::format(&header, &[line]))))
    }
}

fn row([without, with, kept, snapshot_ms, recorder, server]: [Spread; 6]) -> Fields {
    Fields::default()
        .with("clients", CLIENTS)
        .with("test", Test::SimpleUpdate.name())
        .with("every_s", EVERY)
        .with_spread("alone_tps", without)
        .with_spread("captured_tps", with)
        .with_spread("of_alone", kept)
        .with_spread("snapshot_cpu_ms", snapshot_ms)
        .with_spread("recorder_cpu_percent", recorder)
        .with_spread("server_cpu_percent", server)
}

#[cfg(test)]
mod tests {
    use super::super::keys;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        row([Spread::ONE; 6]).assert_keys(keys::CAPTURE);
    }
}
