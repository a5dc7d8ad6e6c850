//! One load: started, watched until it ends, judged.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use seawall_load::write::{Pattern, Report};

use super::plain;
use super::plan::{BLOCK_BYTES, Load, Pace, file_bytes, preset};
use super::postgres;
use super::report::{Endured, Latencies, Work};
use super::sample::{Watch, watch_over};
use super::written::Written;
use crate::bench::word;
use crate::case::PolicyName;
use crate::lab::Lab;
use crate::launch;
use crate::process::{self, descendants};
use crate::side::Side;

/// The load sleeps and spins between operations; more it cannot keep up with.
const RATE_OPS_MAX: f64 = 20_000.0;
/// The plain program runs for a tenth of the load's time, and not longer than this.
const PLAIN_MAX: f64 = 30.0;
/// The part of the time that the control gets.
const CONTROL: f64 = 0.2;

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
            write(lab, policy, pattern, rate, left, &mut watch)?
        }
    };
    written.stop(lab);
    // Twice, because disks of virtual machines change their minds from minute to minute.
    let after = plain::rate(lab, pattern, plain_for)?;
    Ok(Endured::new(load, (before + after) / 2.0, work, &watch, &written, lab.pool.size()))
}

fn write(
    lab: &Lab,
    policy: PolicyName,
    pattern: Pattern,
    rate: Option<f64>,
    lasts: Duration,
    watch: &mut Watch<'_>,
) -> Result<Work> {
    let (data, dir, name) = directory(lab, policy)?;
    let size = file_bytes(lab.pool.size());
    let base = |seconds: f64| {
        let mut args = vec!["write".to_owned(), "--dir".into(), dir.display().to_string(), "--name".into()];
        args.extend([name.into(), "--bs".into(), BLOCK_BYTES.to_string(), "--pattern".into()]);
        args.extend([word(pattern).into(), "--size".into(), size.to_string(), "--apart".into()]);
        args.extend(["--seconds".into(), seconds.to_string()]);
        args
    };
    // The file is made on the bare file system: what is watched does not begin with a log full of it.
    let mut prepare = lab.command(&lab.tools.load);
    prepare.args(base(1.0)).args(["--warmup", "0", "--ops", "1"]);
    process::run(prepare, "preparing the file")?;
    lab.settle()?;
    let paced = |seconds: f64, sync: &str| {
        let mut args = base(seconds);
        args.extend(["--sync".into(), sync.into()]);
        let rate = rate.map(|rate| rate.clamp(1.0, RATE_OPS_MAX).floor().to_string());
        args.extend(rate.into_iter().flat_map(|rate| ["--rate".into(), rate]));
        args
    };
    // What the machine itself does to a program that only writes, in this minute and at this pace.
    let mut control = lab.command(&lab.tools.load);
    control.args(paced(lasts.as_secs_f64() * CONTROL, "none"));
    let control: Report = serde_json::from_slice(&process::run(control, "the control")?)?;
    lab.settle()?;
    let args = paced(lasts.as_secs_f64() * (1.0 - CONTROL), "fdatasync");
    let command = launch::command(lab, Side::Seawall, preset(policy), &data, &lab.tools.load, args)?;
    let running = process::start_captured(command, "the write load", libc::SIGTERM)?;
    let ended = watch_over(running, watch, descendants)?;
    let json = ended.success("the write load")?;
    let report: Report = serde_json::from_slice(&json).context("cannot read the write load's report")?;
    ensure!(report.verified.errors == 0, "the load found damaged data: {:?}", report.verified.examples);
    fs::remove_dir_all(&data)?;
    let bare = Some(control.latency);
    let both = Some(report.latency);
    let latencies =
        [("write", report.write), ("sync", report.fsync), ("both", both), ("without Seawall, no sync", bare)];
    let latencies = latencies.into_iter().filter_map(|(name, s)| Some((name.to_owned(), Latencies::of(s?))));
    Ok(Work { seconds: report.seconds, bytes: Some(report.bytes), latencies: latencies.collect() })
}

/// A directory that the preset `postgres` takes for PGDATA, and the file in it that the policy logs.
fn directory(lab: &Lab, policy: PolicyName) -> Result<(PathBuf, PathBuf, &'static str)> {
    let data = lab.work.data("endure");
    lab.fresh_dir(&data)?;
    let version = data.join("PG_VERSION");
    fs::write(&version, "15\n")?;
    lab.identity.own(&version)?;
    for dir in ["base", "base/5", "pg_wal"] {
        lab.fresh_dir(&data.join(dir))?;
    }
    Ok(match policy {
        PolicyName::Tail => (data.clone(), data.join("pg_wal"), "000000010000000000000001"),
        PolicyName::Atomic => (data.clone(), data.join("base/5"), "16384"),
    })
}
