//! `frozen`: what those who commit wait for at worst while neighbours on the same log are stopped at any moment.
//!
//! Sixteen writers, each a program of its own with a file of its own, append and sync. Four of them are stopped in turn
//! (SIGSTOP) for a while and go on, as `docker pause` does it to a container. Of the other twelve the longest write with
//! its sync is what counts: who was stopped itself waits for whoever stopped it. Beside it the same on the bare file
//! system, the same log with nobody stopped, and how late a thread that only sleeps woke at worst: what the machine takes
//! from any program.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result};
use seawall_load::write::Report;

use super::late;
use super::measure::run_load;
use super::{Fields, Scope, SectionResult};
use crate::lab::Lab;
use crate::launch;
use crate::process;
use crate::side::{Preset, Side};
use crate::spread::Spread;
use crate::table::{self, short};

/// Bytes of the pool in memory unless asked for otherwise.
pub const POOL: u64 = 256 << 20;
const BLOCK_BYTES: u64 = 8192;
const WRITERS: usize = 16;
/// The first so many of them are stopped in turn.
const STOPPED: usize = 4;
/// What each of them appends at most.
const FILE_BYTES: u64 = 1 << 30;
/// How long one stands still, and goes on, in ms: in turn, so that no rhythm of a device or a timer meets it.
const PAUSES_MS: [(u64, u64); 5] = [(150, 20), (400, 35), (90, 55), (250, 15), (60, 80)];

/// How a run is disturbed, and on which side it is.
const RUNS: [(Side, bool); 3] = [(Side::Fs, true), (Side::Seawall, true), (Side::Seawall, false)];

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    RUNS.len() * scope.rounds
}

/// What the files and the log take.
pub fn space(scope: Scope) -> u64 {
    4 * scope.pool + 4 * FILE_BYTES
}

/// One run.
struct Run {
    /// The longest write with its sync of those who were never stopped, µs.
    stall: f64,
    /// Writes of theirs a second, all together.
    rate: f64,
    /// How late a thread woke that only slept, µs.
    late: f64,
}

/// Measures everything. The lab's pool is one on the disk.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let mut runs = RUNS.map(|_| Vec::new());
    for round in 0..scope.rounds {
        for i in (0..RUNS.len()).map(|i| (i + round) % RUNS.len()) {
            runs[i].push(one(lab, RUNS[i], scope, round)?);
        }
    }
    let of = |i: usize, figure: fn(&Run) -> f64| {
        Spread::of(&runs[i].iter().map(figure).collect::<Vec<_>>()).context("a side was never measured")
    };
    let mut row = Fields::default().with("writers", WRITERS).with("stopped", STOPPED);
    let mut lines = Vec::new();
    for (i, name) in ["fs", "seawall", "seawall_calm"].into_iter().enumerate() {
        let (stall, rate, late) = (of(i, |run| run.stall)?, of(i, |run| run.rate)?, of(i, |run| run.late)?);
        row = row
            .with_spread(&format!("{name}_stall_us"), stall)
            .with_spread(&format!("{name}_ops_s"), rate)
            .with_spread(&format!("{name}_late_us"), late);
        lines.push(vec![name.replace('_', ", "), stall.told(short), late.told(short), rate.told(short)]);
    }
    let header = ["16 writers, 4 of them stopped in turn", "longest wait µs", "machine's µs", "writes /s"];
    Ok((vec![row], format!("{}  log on: {}\n", table::format(&header, &lines), lab.medium())))
}

fn one(lab: &Lab, (side, disturbed): (Side, bool), scope: Scope, round: usize) -> Result<Run> {
    let how = if disturbed { "neighbours are stopped" } else { "nobody is stopped" };
    let what = format!("round {}: frozen, {}, {how}", round + 1, super::measure::key(side));
    lab.progress.doing(&what);
    let dir = lab.data(side, "frozen");
    lab.fresh_dir(&dir)?;
    let seconds = if scope.quick { 3 } else { 20 };
    let load = lab.tools.load.display();
    let script = format!(
        "for i in $(seq 0 {last}); do {load} write --name w$i.db-wal --bs {BLOCK_BYTES} --pattern append --sync fdatasync \
         --layout shared --threads 1 --processes 1 --size {FILE_BYTES} --ops 100000000 --seconds {seconds} --dir {dir} \
         > {dir}/report$i & done; wait",
        last = WRITERS - 1,
        dir = dir.display()
    );
    lab.settle()?;
    let command = launch::command(lab, side, Preset::Sqlite, &dir, Path::new("/bin/sh"), ["-c", &script])?;
    let (done, late) = late::beside(|| beside_stops(&dir, disturbed, command));
    done.with_context(|| what.clone())?;
    let reports: Vec<Report> = (STOPPED..WRITERS).map(|i| report(&dir, i)).collect::<Result<_>>()?;
    let stall = reports.iter().map(|report| report.latency.max_us).fold(0.0, f64::max);
    let rate = reports.iter().map(|report| report.ops_per_s).sum();
    fs::remove_dir_all(&dir)?;
    lab.progress.done(&format!("{what}: {} µs at worst", short(stall)));
    Ok(Run { stall, rate, late })
}

fn report(dir: &Path, writer: usize) -> Result<Report> {
    let path = dir.join(format!("report{writer}"));
    let report: Report =
        serde_json::from_slice(&fs::read(&path)?).with_context(|| path.display().to_string())?;
    anyhow::ensure!(
        report.verified.errors == 0,
        "writer {writer}: damaged data: {:?}",
        report.verified.examples
    );
    Ok(report)
}

/// Runs the writers, and stops some of them in turn meanwhile.
fn beside_stops(dir: &Path, disturbed: bool, command: Command) -> Result<Vec<u8>> {
    let enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stops = disturbed.then(|| scope.spawn(|| stop_in_turn(dir, || enough.load(Relaxed))));
        let done = run_load(command);
        enough.store(true, Relaxed);
        if let Some(stops) = stops {
            let _ = stops.join();
        }
        done
    })
}

fn stop_in_turn(dir: &Path, enough: impl Fn() -> bool) {
    let nap = |ms| std::thread::sleep(Duration::from_millis(ms));
    for turn in 0.. {
        if enough() {
            return;
        }
        let (stopped, between) = PAUSES_MS[turn % PAUSES_MS.len()];
        let writer = pids_of(dir, turn % STOPPED);
        writer.iter().for_each(|pid| process::signal(*pid, libc::SIGSTOP));
        nap(stopped);
        writer.iter().for_each(|pid| process::signal(*pid, libc::SIGCONT));
        nap(between);
    }
}

/// The processes of this writer.
fn pids_of(dir: &Path, writer: usize) -> Vec<u32> {
    // The shell that starts them has no name of theirs in its script.
    let (name, dir) = (format!(" w{writer}.db-wal "), dir.to_string_lossy());
    let is_it = |pid: &u32| {
        let line = process::command_line(*pid);
        line.contains(&name) && line.contains(&*dir)
    };
    seawall_media::process::all().filter(is_it).collect()
}
