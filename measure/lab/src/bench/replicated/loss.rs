//! A keeper that is lost under load, and one that is brought up to date under load.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use seawall_load::write::{Pattern, Report};
use serde::Deserialize;

use super::super::Scope;
use super::super::late;
use super::super::measure::Shape as WriteShape;
use super::super::placed::Placed;
use super::kept::with_keepers;
use super::row::{Row, Target};
use crate::keepers::{Keepers, Shape};
use crate::lab::Lab;
use crate::process;
use crate::side::Preset;
use crate::spread::Spread;
use crate::table::short;

const SHAPE: Shape = Shape::of(3, 0);
const BLOCK_BYTES: u64 = 8192;
const FILE_BYTES: u64 = 64 << 20;
const PROCESSES: u32 = 4;
/// The longest that a commit may take beside the loss of a keeper, milliseconds.
const STALL_MS: f64 = 50.0;
/// The least of a load's rate that is left while a keeper is brought up to date.
const LEFT: f64 = 0.8;
const PATIENCE: Duration = Duration::from_secs(60);

/// What a keeper that comes back has to be sent.
fn to_catch_up(scope: Scope) -> u64 {
    if scope.quick { 64 << 20 } else { 1 << 30 }
}

/// How many steps there are.
pub fn steps(scope: Scope) -> usize {
    2 * scope.rounds
}

/// Both rows.
pub fn run(lab: &mut Lab, scope: Scope) -> Result<Vec<Row>> {
    let lost = with_keepers(lab, SHAPE, scope.pool, |lab, keepers| lost(lab, keepers, scope))?;
    // Room for what is logged meanwhile as well.
    let bytes = to_catch_up(scope) / 4 * 5;
    let caught = with_keepers(lab, SHAPE, bytes, |lab, keepers| caught_up(lab, keepers, scope))?;
    Ok(vec![lost, caught])
}

fn load(lab: &Lab) -> Placed<'_> {
    Placed {
        lab,
        dir: lab.work.data("replicated-loss"),
        pool: Some(&lab.pool),
        syncs: true,
        shape: WriteShape::shared(BLOCK_BYTES, Pattern::Random, 1, PROCESSES),
        size: FILE_BYTES,
    }
}

fn in_words() -> String {
    format!("{BLOCK_BYTES} bytes random + fdatasync, {PROCESSES} processes")
}

fn run_for(load: &Placed<'_>, seconds: f64) -> Result<Report> {
    load.run(&[("--seconds", seconds.to_string())])
}

/// Runs the load, and kills this process in the middle.
fn run_beside_a_kill(load: &Placed<'_>, seconds: f64, doomed: u32) -> Result<Report> {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs_f64(seconds / 2.0));
            process::signal(doomed, libc::SIGKILL);
        });
        run_for(load, seconds)
    })
}

/// The longest commit of a load beside which a keeper is killed.
fn lost(lab: &Lab, keepers: &mut Keepers, scope: Scope) -> Result<Row> {
    let seconds = if scope.quick { 1.0 } else { 4.0 };
    let (load, mut longest, mut late) = (load(lab), Vec::new(), Vec::new());
    load.prepare()?;
    lab.pool.start_daemon(&load.dir, Preset::Sqlite.name())?;
    for round in 0..scope.rounds {
        let nth = round % usize::from(SHAPE.keepers);
        let what = format!("round {}: keeper {} is killed", round + 1, nth + 1);
        lab.progress.doing(&what);
        wait_until(lab, &what, |kept| kept.roles().all(|role| role == "counts"))?;
        lab.settle()?;
        let doomed = keepers.pid(nth).context("the keeper is not running")?;
        let (report, late_us) = late::beside(|| run_beside_a_kill(&load, seconds, doomed));
        keepers.kill(nth)?;
        let stall_ms = report.with_context(|| what.clone())?.latency.max_us / 1e3;
        ensure!(role(lab, nth)? != "counts", "{what}: the keeper still counts");
        keepers.start_again(lab, nth)?;
        lab.progress.done(&format!(
            "{what}: longest {} ms, a sleeper {}",
            short(stall_ms),
            short(late_us / 1e3)
        ));
        longest.push(stall_ms);
        late.push(late_us / 1e3);
    }
    let spread = |values: &[f64]| Spread::of(values).context("nothing was measured");
    Ok(Row {
        what: "keeper lost",
        load: in_words(),
        shape: SHAPE,
        round_trip: None,
        seawall: spread(&longest)?,
        unit: "ms, the longest commit",
        other: Some(("a sleeper late", spread(&late)?)),
        result: spread(&longest)?,
        target: Target::AtMost(STALL_MS),
    })
}

/// The rate of a load while a keeper is sent all of the log, against that before.
fn caught_up(lab: &Lab, keepers: &mut Keepers, scope: Scope) -> Result<Row> {
    let seconds = if scope.quick { 0.5 } else { 4.0 };
    let load = load(lab);
    load.prepare()?;
    lab.pool.start_daemon(&load.dir, Preset::Sqlite.name())?;
    lab.progress.doing("the log is filled");
    load.run(&[("--sustained", to_catch_up(scope).to_string())])?;
    let (mut before, mut meanwhile) = (Vec::new(), Vec::new());
    for round in 0..scope.rounds {
        let what = format!("round {}: a keeper is brought up to date", round + 1);
        lab.progress.doing(&what);
        wait_until(lab, &what, |kept| kept.roles().all(|role| role == "counts"))?;
        lab.settle()?;
        let plain = run_for(&load, seconds)?.ops_per_s;
        let nth = round % usize::from(SHAPE.keepers);
        keepers.kill(nth)?;
        wait_until(lab, &what, |kept| kept.roles().nth(nth) == Some("down"))?;
        lab.settle()?;
        keepers.start_again(lab, nth)?;
        wait_until(lab, &what, |kept| kept.roles().nth(nth) != Some("down"))?;
        let beside = run_for(&load, seconds).with_context(|| what.clone())?.ops_per_s;
        let still = role(lab, nth)? == "joins";
        let note = if still { "" } else { " (it was up to date before the load ended)" };
        lab.progress.done(&format!("{what}: {} of the rate is left{note}", short(beside / plain)));
        before.push(plain);
        meanwhile.push(beside);
    }
    let spread = |values: &[f64]| Spread::of(values).context("nothing was measured");
    let left: Vec<f64> = meanwhile.iter().zip(&before).map(|(beside, plain)| beside / plain).collect();
    Ok(Row {
        what: "catching up",
        load: format!("{}, {} MiB to catch up", in_words(), to_catch_up(scope) >> 20),
        shape: SHAPE,
        round_trip: None,
        seawall: spread(&meanwhile)?,
        unit: "a second",
        other: Some(("before", spread(&before)?)),
        result: spread(&left)?,
        target: Target::AtLeast(LEFT),
    })
}

#[derive(Deserialize)]
struct Status {
    kept: Kept,
}

#[derive(Deserialize)]
struct Kept {
    keepers: Vec<OneKeeper>,
}

#[derive(Deserialize)]
struct OneKeeper {
    role: String,
}

impl Kept {
    fn roles(&self) -> impl Iterator<Item = &str> {
        self.keepers.iter().map(|keeper| keeper.role.as_str())
    }
}

fn role(lab: &Lab, nth: usize) -> Result<String> {
    let status: Status = lab.pool.status()?;
    status.kept.roles().nth(nth).map(str::to_owned).context("the daemon does not know this keeper")
}

fn wait_until(lab: &Lab, what: &str, is_so: impl Fn(&Kept) -> bool) -> Result<()> {
    process::wait_until(what, PATIENCE, || Ok(is_so(&lab.pool.status::<Status>()?.kept)))
}
