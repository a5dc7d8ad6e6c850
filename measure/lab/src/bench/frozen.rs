//! `frozen`: what those who commit wait for at worst while neighbours on the same log are stopped at any moment.
//!
//! Sixteen writers, each a program of its own with a file of its own, append and sync. Four of them are stopped in turn
//! (SIGSTOP) for a while and go on, as `docker pause` does it to a container. Of the other twelve the longest write with
//! its sync is what counts: a stopped one waits for whoever stopped it. Beside it the same on the bare file
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
use super::runs::{Figure, Runs};
use super::{Fields, Scope, SectionResult};
use crate::lab::Lab;
use crate::launch;
use crate::process;
use crate::side::{Preset, Side};
use crate::table::{self, short};

/// Bytes of the pool in memory unless asked for otherwise.
pub const POOL: u64 = 256 << 20;
const BLOCK_BYTES: u64 = 8192;
const WRITERS: usize = 16;
/// The first so many of them are stopped in turn.
const STOPPED: usize = 4;
/// What each of them appends at most.
const FILE_BYTES: u64 = 1 << 30;
/// How long one is stopped, and then goes on, in ms: in turn, so that no rhythm of a device or a timer meets it.
const PAUSES_MS: [(u64, u64); 5] = [(150, 20), (400, 35), (90, 55), (250, 15), (60, 80)];

/// A side, and whether its run is disturbed.
type Way = (Side, bool);
const WAYS: [Way; 3] = [(Side::Fs, true), (Side::Seawall, true), (Side::Seawall, false)];

/// Its name in the file.
fn name((side, disturbed): Way) -> &'static str {
    match (side, disturbed) {
        (Side::Seawall, false) => "seawall_calm",
        (Side::Seawall, true) => "seawall",
        _ => "fs",
    }
}

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    WAYS.len() * scope.rounds
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

const FIGURES: [Figure<Run>; 3] =
    [("stall_us", |run| run.stall), ("late_us", |run| run.late), ("ops_s", |run| run.rate)];

/// Measures everything. The lab's pool is one on the disk.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let title = |way: Way| {
        let how = if way.1 { "neighbours are stopped" } else { "no writer is stopped" };
        format!("frozen, {}, {how}", name(way))
    };
    let told = |run: &Run| format!("{} µs at worst", short(run.stall));
    let runs = Runs::measure(lab, &WAYS, scope.rounds, title, told, |way, _| one(lab, way, scope))?;
    let header = ["16 writers, 4 of them stopped in turn", "longest wait µs", "machine's µs", "writes /s"];
    let lines = WAYS.map(|way| {
        let mut line = vec![name(way).replace('_', ", ")];
        line.extend(FIGURES.map(|(_, figure)| runs.told(way, figure)));
        line
    });
    Ok((vec![fields(&runs)], format!("{}  log on: {}\n", table::format(&header, &lines), lab.medium())))
}

fn fields(runs: &Runs<Way, Run>) -> Fields {
    let row = Fields::default().with("writers", WRITERS).with("stopped", STOPPED);
    runs.with_figures(row, &WAYS, name, &FIGURES)
}

fn one(lab: &Lab, (side, disturbed): Way, scope: Scope) -> Result<Run> {
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
    done?;
    let reports: Vec<Report> = (STOPPED..WRITERS).map(|i| report(&dir, i)).collect::<Result<_>>()?;
    let stall = reports.iter().map(|report| report.latency.max_us).fold(0.0, f64::max);
    let rate = reports.iter().map(|report| report.ops_per_s).sum();
    fs::remove_dir_all(&dir)?;
    Ok(Run { stall, rate, late })
}

fn report(dir: &Path, writer: usize) -> Result<Report> {
    let path = dir.join(format!("report{writer}"));
    let report: Report = serde_json::from_slice(&fs::read(&path)?)
        .with_context(|| format!("cannot read the report in {}", path.display()))?;
    anyhow::ensure!(
        report.verified.errors == 0,
        "writer {writer} found damaged data: {:?}",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        fields(&Runs::default()).assert_keys("frozen");
    }
}
