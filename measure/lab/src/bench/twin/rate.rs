//! SETs a second with `appendfsync always` under Seawall, with a twin and without, in turn; and what the twin takes.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};

use super::super::{Fields, Scope, SectionResult};
use super::pair::Pair;
use crate::installed::Sets;
use crate::lab::Lab;
use crate::process::cpu_seconds;
use crate::redis::{Fsync, Server};
use crate::side::Side;
use crate::spread::Spread;
use crate::table::{self, short};

const SHAPES: [Sets; 3] =
    [Sets { clients: 1, pipeline: 1 }, Sets { clients: 50, pipeline: 1 }, Sets { clients: 50, pipeline: 16 }];
const MIB: f64 = 1048576.0;

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    SHAPES.len() * scope.rounds * 2
}

/// A round's figures of a shape.
#[derive(Clone, Copy)]
struct Round {
    alone: f64,
    twin: f64,
    /// Processors that the twin and its supervisor used meanwhile.
    cpus: f64,
    memory_mb: f64,
}

/// Measures everything.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let data = lab.work.data("redis-twin");
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for shape in SHAPES {
        let mut rounds = Vec::new();
        for round in 0..scope.rounds {
            rounds.push(one(lab, &data, shape, scope, round)?);
        }
        let of = |figure: fn(&Round) -> f64| {
            Spread::of(&rounds.iter().map(figure).collect::<Vec<_>>()).context("never measured")
        };
        let (alone, twin, ratio) = (of(|r| r.alone)?, of(|r| r.twin)?, of(|r| r.twin / r.alone)?);
        let (cpus, memory) = (of(|r| r.cpus)?, of(|r| r.memory_mb)?);
        rows.push(
            row(shape)
                .with_spread("alone", alone)
                .with_spread("twin", twin)
                .with_spread("of_alone", ratio)
                .with_spread("twin_cpus", cpus)
                .with_spread("twin_memory_mb", memory),
        );
        lines.push(vec![
            format!("{} clients, pipeline {}", shape.clients, shape.pipeline),
            alone.told(short),
            twin.told(short),
            ratio.told(|ratio| format!("{ratio:.2}")),
            cpus.told(|cpus| format!("{cpus:.2}")),
            memory.told(short),
        ]);
    }
    let header = ["Redis, SET/s", "alone", "with a twin", "of alone", "twin's CPUs", "twin's MiB"];
    Ok((rows, format!("{}  log on: {}\n", table::format(&header, &lines), lab.medium())))
}

fn row(shape: Sets) -> Fields {
    Fields::default().with("clients", shape.clients).with("pipeline", shape.pipeline)
}

/// Both, each first every other time.
fn one(lab: &Lab, data: &Path, shape: Sets, scope: Scope, round: usize) -> Result<Round> {
    let seconds = if scope.quick { 2.0 } else { 5.0 };
    let mut found = Round { alone: 0.0, twin: 0.0, cpus: 0.0, memory_mb: 0.0 };
    for turn in 0..2 {
        let what =
            format!("round {}: twin, {} clients, pipeline {}", round + 1, shape.clients, shape.pipeline);
        lab.progress.doing(&what);
        lab.fresh_dir(data)?;
        if (turn + round).is_multiple_of(2) {
            let server = Server::start(lab, Side::Seawall, data, Fsync::Always)?;
            found.alone = shape.run(lab, &server, seconds)?.0.per_second;
            server.stop()?;
        } else {
            with_twin(lab, data, shape, seconds, &mut found)?;
        }
        lab.progress.done(&what);
    }
    Ok(found)
}

fn with_twin(lab: &Lab, data: &Path, shape: Sets, seconds: f64, found: &mut Round) -> Result<()> {
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
    found.twin = shape.run(lab, &pair.server, seconds)?.0.per_second;
    found.cpus = (cpu() - before) / began.elapsed().as_secs_f64();
    // The status is a moment old.
    crate::process::pause(std::time::Duration::from_secs(1))?;
    let memory = pair.status().and_then(|status| status["memory"].as_f64());
    found.memory_mb = memory.context("the twin's memory is not known")? / MIB;
    pair.stop()
}

#[cfg(test)]
mod tests {
    use super::super::super::keys;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        let spread = Spread { median: 1.0, min: 1.0, max: 1.0 };
        let names = ["alone", "twin", "of_alone", "twin_cpus", "twin_memory_mb"];
        names.iter().fold(row(SHAPES[0]), |row, name| row.with_spread(name, spread)).assert_keys(keys::TWIN);
    }
}
