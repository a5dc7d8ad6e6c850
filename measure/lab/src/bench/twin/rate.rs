//! SETs a second with `appendfsync always` under Seawall, with a twin and without, in turn; and what the twin takes.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};

use super::super::runs::{Runs, told};
use super::super::{Fields, Scope, SectionResult};
use super::pair::Pair;
use crate::installed::Sets;
use crate::lab::Lab;
use crate::process::cpu_seconds;
use crate::redis::{Fsync, Server};
use crate::side::Side;
use crate::table::{self, short};

const SHAPES: [Sets; 3] =
    [Sets { clients: 1, pipeline: 1 }, Sets { clients: 50, pipeline: 1 }, Sets { clients: 50, pipeline: 16 }];
const MIB: f64 = 1048576.0;

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    SHAPES.len() * scope.rounds * 2
}

/// One run.
struct Run {
    rate: f64,
    /// Processors that the twin and its supervisor used meanwhile.
    cpus: f64,
    memory_mb: f64,
}

/// Measures everything.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let data = lab.work.data("redis-twin");
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for shape in SHAPES {
        let name = format!("{} clients, pipeline {}", shape.clients, shape.pipeline);
        let title = |with_twin: bool| format!("{name}, {}", if with_twin { "a twin" } else { "alone" });
        let told = |run: &Run| format!("{} a second", short(run.rate));
        let seconds = if scope.quick { 2.0 } else { 5.0 };
        let runs = Runs::measure(lab, &[false, true], scope.rounds, title, told, |with_twin, _| {
            lab.fresh_dir(&data)?;
            if with_twin {
                beside_a_twin(lab, &data, shape, seconds)
            } else {
                alone(lab, &data, shape, seconds)
            }
        })?;
        rows.push(row(shape, &runs));
        lines.push(line(name, &runs));
    }
    let header = ["Redis, SET/s", "alone", "with a twin", "of alone", "twin's CPUs", "twin's MiB"];
    Ok((rows, format!("{}  log on: {}\n", table::format(&header, &lines), lab.medium())))
}

fn rate(run: &Run) -> f64 {
    run.rate
}

fn row(shape: Sets, runs: &Runs<bool, Run>) -> Fields {
    Fields::default()
        .with("clients", shape.clients)
        .with("pipeline", shape.pipeline)
        .with_spread("alone", runs.spread(false, rate))
        .with_spread("twin", runs.spread(true, rate))
        .with_spread("of_alone", runs.ratio(true, false, rate))
        .with_spread("twin_cpus", runs.spread(true, |run| run.cpus))
        .with_spread("twin_memory_mb", runs.spread(true, |run| run.memory_mb))
}

fn line(name: String, runs: &Runs<bool, Run>) -> Vec<String> {
    vec![
        name,
        runs.told(false, rate),
        runs.told(true, rate),
        told(runs.ratio(true, false, rate)),
        runs.told(true, |run| run.cpus),
        runs.told(true, |run| run.memory_mb),
    ]
}

fn alone(lab: &Lab, data: &Path, shape: Sets, seconds: f64) -> Result<Run> {
    let server = Server::start(lab, Side::Seawall, data, Fsync::Always)?;
    let rate = shape.run(lab, &server, seconds)?.0.per_second;
    server.stop()?;
    Ok(Run { rate, cpus: 0.0, memory_mb: 0.0 })
}

fn beside_a_twin(lab: &Lab, data: &Path, shape: Sets, seconds: f64) -> Result<Run> {
    let pair = Pair::start(lab, Side::Seawall, data, &[])?;
    let (twin, primary) = (pair.process("twin")?, pair.process("primary")?);
    let supervisor = seawall_media::process::all().find(|pid| {
        crate::process::descendants(*pid).contains(&primary) && {
            crate::process::command_line(*pid).contains("twin --state")
                && !crate::process::command_line(*pid).contains(" run ")
        }
    });
    let cpu = || cpu_seconds(twin) + supervisor.map_or(0.0, cpu_seconds);
    let (before, began) = (cpu(), Instant::now());
    let rate = shape.run(lab, &pair.server, seconds)?.0.per_second;
    let cpus = (cpu() - before) / began.elapsed().as_secs_f64();
    // The status is a moment old.
    crate::process::pause(std::time::Duration::from_secs(1))?;
    let memory = pair.status().and_then(|status| status["memory"].as_f64());
    let memory_mb = memory.context("the twin's memory is not known")? / MIB;
    pair.stop()?;
    Ok(Run { rate, cpus, memory_mb })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        row(SHAPES[0], &Runs::default()).assert_keys("twin");
    }
}
