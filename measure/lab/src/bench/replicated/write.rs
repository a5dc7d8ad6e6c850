//! Single writes: one writer's wait against the bare round trip, many writers against the bare file system; what keepers
//! take of their processors.

use anyhow::{Context, Result, anyhow};
use seawall_load::write::{Pattern, Report};

use super::super::Scope;
use super::super::measure::{Shape as WriteShape, key, word};
use super::super::placed::Placed;
use super::super::runs::Runs;
use super::kept::with_keepers;
use super::row::{Row, Target};
use crate::keepers::{Keepers, Shape};
use crate::lab::Lab;
use crate::net::Ends;
use crate::side::Side;
use crate::spread::Spread;
use crate::table::short;

const BLOCK_BYTES: u64 = 8192;
/// What is overwritten; what is appended to, at most.
const FILE_BYTES: u64 = 128 << 20;
const SIDES: [Side; 2] = [Side::Fs, Side::Seawall];
/// What one writer may take beyond the round trip, microseconds.
const BEYOND_US: f64 = 25.0;
/// Percent of one CPU that a keeper may take for 10,000 commits a second.
const CPU_PERCENT: f64 = 10.0;

fn latency_shapes(scope: Scope) -> Vec<Shape> {
    let delays: &[u64] = if scope.quick { &[0, 200] } else { &[0, 50, 200, 1000] };
    delays.iter().flat_map(|&delay| [1, 2, 3].map(|keepers| Shape::of(keepers, delay))).collect()
}

/// Processes, a pattern, and how many times the bare file system they are to be.
const RATES: [(u32, Pattern, f64); 4] = [
    (1, Pattern::Append, 2.0),
    (1, Pattern::Random, 2.0),
    (16, Pattern::Append, 3.0),
    (16, Pattern::Random, 3.0),
];

/// How many steps there are.
pub fn steps(scope: Scope) -> usize {
    scope.rounds * (latency_shapes(scope).len() + RATES.len() * SIDES.len())
}

/// All rows.
pub fn run(lab: &mut Lab, scope: Scope) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for shape in latency_shapes(scope) {
        rows.push(with_keepers(lab, shape, scope.pool, |lab, keepers| one_writer(lab, keepers, scope))?);
    }
    let shape = Shape::of(3, 0);
    for (processes, pattern, least) in RATES {
        let of_this = with_keepers(lab, shape, scope.pool, |lab, keepers| {
            many_writers(lab, keepers, scope, (processes, pattern, least))
        })?;
        rows.extend(of_this);
    }
    Ok(rows)
}

fn placed(lab: &Lab, side: Side, processes: u32, pattern: Pattern) -> Placed<'_> {
    Placed {
        lab,
        dir: lab.data(side, &format!("replicated-{}", key(side))),
        pool: (side == Side::Seawall).then_some(&lab.pool),
        syncs: true,
        shape: WriteShape::shared(BLOCK_BYTES, pattern, 1, processes),
        size: FILE_BYTES,
    }
}

/// One run of a new file, before the log is half full and destaging begins.
fn one(lab: &Lab, scope: Scope, load: &Placed<'_>) -> Result<Report> {
    load.prepare()?;
    lab.settle()?;
    let (ops, seconds) = (scope.pool / 8 * 3 / BLOCK_BYTES, if scope.quick { 0.5 } else { 2.0 });
    let report = load.run(&[("--ops", ops.to_string()), ("--seconds", seconds.to_string())])?;
    lab.settle()?;
    Ok(report)
}

/// What a writer waits beyond a round trip.
fn one_writer(lab: &Lab, keepers: &Keepers, scope: Scope) -> Result<Row> {
    let times = if scope.quick { 500 } else { 2000 };
    let shape = keepers.shape;
    let [mut blocking, mut spinning, mut of_all, mut commits] = [const { Vec::new() }; 4];
    let load = placed(lab, Side::Seawall, 1, Pattern::Random);
    for round in 0..scope.rounds {
        let what = format!(
            "round {}: one writer, {} of {} keepers, {} µs each way",
            round + 1,
            shape.acks,
            shape.keepers,
            shape.delay.as_micros()
        );
        lab.progress.doing(&what);
        let mut trips = || -> Result<()> {
            blocking.push(keepers.round_trip_us(Ends::Block, times)?);
            spinning.push(keepers.round_trip_us(Ends::Spin, times)?);
            of_all.push(keepers.round_trip_of_all_us(times)?);
            Ok(())
        };
        // Whatever the machine does from one second to the next counts against neither always.
        if round % 2 == 0 {
            trips()?;
        }
        let commit = one(lab, scope, &load).with_context(|| what.clone())?.latency.p50_us;
        if round % 2 == 1 {
            trips()?;
        }
        commits.push(commit);
        lab.progress.done(&format!("{what}: {} µs", short(commit)));
    }
    let beyond: Vec<f64> = commits.iter().zip(&blocking).map(|(commit, trip)| commit - trip).collect();
    let spread = |values: &[f64]| Spread::of(values).context("nothing was measured");
    Ok(Row {
        what: "one writer",
        load: format!("{BLOCK_BYTES} bytes {} + fdatasync, 1 process", word(Pattern::Random)),
        shape,
        round_trip: Some([spread(&blocking)?, spread(&spinning)?, spread(&of_all)?]),
        seawall: spread(&commits)?,
        unit: "µs",
        other: Some(("round trip", spread(&blocking)?)),
        result: spread(&beyond)?,
        target: Target::AtMost(BEYOND_US),
    })
}

/// A run, and what keepers took of their processors, in percent of one for each 10,000 commits a second.
struct Run {
    ops_per_s: f64,
    cpu_percent: f64,
}

fn many_writers(
    lab: &Lab,
    keepers: &Keepers,
    scope: Scope,
    (processes, pattern, least): (u32, Pattern, f64),
) -> Result<Vec<Row>> {
    let title = |side| format!("{processes} writers, {}, {}", word(pattern), key(side));
    let told = |run: &Run| format!("{} a second", short(run.ops_per_s));
    let runs = Runs::measure(lab, &SIDES, scope.rounds, title, told, |side, _| {
        let before = keepers.cpu_s();
        let report = one(lab, scope, &placed(lab, side, processes, pattern))?;
        let took = (keepers.cpu_s() - before) / f64::from(keepers.shape.keepers);
        Ok(Run { ops_per_s: report.ops_per_s, cpu_percent: took / report.ops as f64 * 1e6 })
    })?;
    let never = || anyhow!("a side was never measured");
    let load = format!("{BLOCK_BYTES} bytes {} + fdatasync, {processes} processes", word(pattern));
    let rate = |run: &Run| run.ops_per_s;
    let write = Row {
        what: "write",
        load: load.clone(),
        shape: keepers.shape,
        round_trip: None,
        seawall: runs.spread(Side::Seawall, rate).ok_or_else(never)?,
        unit: "a second",
        other: Some(("bare", runs.spread(Side::Fs, rate).ok_or_else(never)?)),
        result: runs.ratio(Side::Seawall, Side::Fs, rate).ok_or_else(never)?,
        target: Target::AtLeast(least),
    };
    let cpu = runs.spread(Side::Seawall, |run| run.cpu_percent).ok_or_else(never)?;
    let processors = Row {
        what: "keepers' CPU",
        load,
        shape: keepers.shape,
        round_trip: None,
        seawall: cpu,
        unit: "% of a CPU for 10,000 commits/s",
        other: None,
        result: cpu,
        target: Target::AtMost(CPU_PERCENT),
    };
    Ok(vec![write, processors])
}
