//! One load: started, watched until it ends, judged.

use std::time::Duration;

use anyhow::Result;
use seawall_load::write::Pattern;

use super::plain;
use super::plan::{BLOCK_BYTES, Load, Pace, file_bytes};
use super::postgres;
use super::report::Endured;
use super::sample::Watch;
use super::write::Writing;
use super::written::Written;
use crate::lab::Lab;

/// The plain program runs for a tenth of the load's time, and not longer than this.
const PLAIN_MAX: f64 = 30.0;

/// What a run needs on the disk: the load's file, the plain program's, a cluster with its WAL.
pub fn space(pool: u64) -> u64 {
    2 * file_bytes(pool) + postgres::SPACE
}

/// Runs one load for `seconds`.
pub fn endure(lab: &Lab, load: Load, seconds: f64) -> Result<Endured> {
    let plain_for = Duration::from_secs_f64((seconds / 10.0).clamp(0.5, PLAIN_MAX));
    let (pattern, pace) = match load {
        Load::Write(_, pattern, pace) => (pattern, pace),
        Load::Postgres(_) => (Pattern::Random, Pace::FlatOut),
    };
    let before = plain::rate(lab, pattern, plain_for)?;
    let left = Duration::from_secs_f64((seconds - 2.0 * plain_for.as_secs_f64()).max(1.0));
    let mut watch = Watch::new(lab);
    let mut written = Written::start(lab);
    let work = match load {
        Load::Postgres(policy) => postgres::run(lab, policy, left, &mut watch)?,
        Load::Write(policy, ..) => {
            let rate = (pace == Pace::Steady).then_some(before / 2.0 / BLOCK_BYTES as f64);
            Writing { lab, policy, pattern, rate }.run(left, &mut watch)?
        }
    };
    written.stop(lab);
    // Twice, because disks of virtual machines change their minds from minute to minute.
    let after = plain::rate(lab, pattern, plain_for)?;
    Ok(Endured::new(load, (before + after) / 2.0, work, &watch, &written, lab.pool.size()))
}
