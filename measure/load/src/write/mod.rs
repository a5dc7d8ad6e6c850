//! `write`: the latency of making one write durable.
//!
//! One operation is one `pwrite` (append: one `write` to an `O_APPEND` file) followed by one
//! `fdatasync`; the pair is what is timed. Workers are threads times processes; the clock starts
//! for all of them at once, after each has done its warm-up. When they are done everything is read
//! back and compared with what each worker knows it wrote ([`verify`]).
//!
//! Input: [`Options`]. Output: [`Report`]. Not handled here: crashes (the expectation can be saved
//! and checked later, by another process, with `check-write`).

mod fork;
mod options;
mod plan;
mod prepare;
pub mod verify;
mod worker;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

pub use options::{Layout, Options, Pattern, Sync, parse_bytes};
pub use plan::Plan;
use worker::Outcome;

use crate::latency::{Recorder, Summary};
use verify::{Checked, Expectation};

/// The result of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Block size in bytes.
    pub bs: usize,
    /// Where the writes went.
    pub pattern: Pattern,
    /// Threads in each process.
    pub threads: usize,
    /// Processes.
    pub processes: usize,
    /// What followed each write.
    pub sync: Sync,
    /// Timed operations.
    pub ops: u64,
    /// Bytes written by them.
    pub bytes: u64,
    /// From the common start to the end of the last worker.
    pub seconds: f64,
    /// Operations a second, all workers together.
    pub ops_per_s: f64,
    /// Latency of one operation; `max_us` is the longest stall.
    pub latency: Summary,
    /// Latency of the writes alone (`--apart`).
    #[serde(default)]
    pub write: Option<Summary>,
    /// Latency of the syncs alone (`--apart`).
    #[serde(default)]
    pub fsync: Option<Summary>,
    /// What reading everything back found.
    pub verified: Checked,
}

/// Prepares the files, runs the load, verifies the data.
pub fn run(options: &Options) -> Result<Report> {
    let plan = Plan::new(options, run_base())?;
    prepare::files(&plan).context("cannot prepare the files")?;
    let started = Instant::now();
    let outcomes = if options.processes == 1 {
        vec![worker::run_process(&plan, 0, || Ok(()))?]
    } else {
        fork::run_processes(&plan)?
    };
    report(&plan, outcomes, started)
}

fn report(plan: &Plan, outcomes: Vec<Outcome>, started: Instant) -> Result<Report> {
    let (mut recorder, mut writes, mut syncs) =
        (Recorder::default(), Recorder::default(), Recorder::default());
    let mut expectation = Expectation::new(plan);
    let mut seconds = 0f64;
    for outcome in outcomes {
        recorder.merge_counts(&outcome.counts);
        writes.merge_counts(&outcome.apart[0]);
        syncs.merge_counts(&outcome.apart[1]);
        seconds = seconds.max(outcome.seconds);
        expectation.writers.extend(outcome.writers);
    }
    debug_assert!(seconds <= started.elapsed().as_secs_f64());
    let options = &plan.options;
    if let Some(path) = &options.save_expectation {
        expectation.save(path)?;
    }
    let latency = recorder.summary();
    Ok(Report {
        bs: options.bs,
        pattern: options.pattern,
        threads: options.threads,
        processes: options.processes,
        sync: options.sync,
        ops: latency.ops,
        bytes: latency.ops * options.bs as u64,
        seconds,
        ops_per_s: if seconds > 0.0 { latency.ops as f64 / seconds } else { 0.0 },
        latency,
        write: options.apart.then(|| writes.summary()),
        fsync: options.apart.then(|| syncs.summary()),
        verified: verify::check(&options.dir, &expectation)?,
    })
}

/// A number larger than that of any run before: sequences start above it, so a block an earlier
/// run left behind can never pass for one of this run.
fn run_base() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(1)
}
