//! pgbench, for long: data larger than the buffers, a checkpoint every 30 seconds, clients that come and go.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::Result;
use seawall_load::latency::Recorder;

use super::plan::preset;
use super::report::{Latencies, Work};
use super::sample::{Watch, watch_over};
use crate::case::PolicyName;
use crate::lab::Lab;
use crate::pg::{Bench, Cluster, Template, Test, Variant, check_work, transactions};
use crate::process::{self, descendants};
use crate::side::Side;
use crate::tools::postgres_bin;

/// A cluster of scale 10 that grows for as long as it runs, and its WAL.
pub const SPACE: u64 = 4 << 30;
const SCALE: u32 = 10;
const CLIENTS: usize = 4;
/// pgbench is started anew this often.
const SLICE: Duration = Duration::from_secs(30);

const SETTINGS: &[(&str, &str)] = &[
    ("shared_buffers", "32MB"),
    ("checkpoint_timeout", "30s"),
    ("max_wal_size", "1GB"),
    ("min_wal_size", "80MB"),
    ("autovacuum", "on"),
];

/// As `seawall tune` advises.
fn variant(policy: PolicyName) -> Variant {
    let full_pages: &[_] = match policy {
        PolicyName::Tail => &[],
        PolicyName::Atomic => &[("full_page_writes", "off")],
    };
    Variant { settings: SETTINGS, on_seawall: full_pages, preset: preset(policy) }
}

/// Runs it; the data is checked at the end.
pub fn run(lab: &Lab, policy: PolicyName, lasts: Duration, watch: &mut Watch<'_>) -> Result<Work> {
    let bin = postgres_bin()?;
    let data = Template::create(lab, &bin, SCALE)?.into_data();
    lab.settle()?;
    let cluster = Cluster::start_as(lab, &bin, Side::Seawall, &data, &variant(policy))?;
    let begin = Instant::now();
    let mut clock = Recorder::default();
    let mut transactions = 0;
    while begin.elapsed() < lasts {
        let left = lasts.saturating_sub(begin.elapsed()).clamp(Duration::from_secs(1), SLICE);
        transactions += slice(lab, &cluster, left, &mut clock, watch)?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    check_work(&cluster, transactions)?;
    cluster.stop()?;
    fs::remove_dir_all(&data)?;
    let latencies = vec![("transaction".to_owned(), Latencies::of(clock.summary()))];
    Ok(Work { seconds, bytes: None, latencies })
}

/// One run of pgbench, which logs every transaction.
fn slice(
    lab: &Lab,
    cluster: &Cluster<'_>,
    lasts: Duration,
    clock: &mut Recorder,
    watch: &mut Watch<'_>,
) -> Result<u64> {
    let logs = lab.work.data("pgbench-logs");
    lab.fresh_dir(&logs)?;
    let bench = Bench { test: Test::SimpleUpdate, clients: CLIENTS, seconds: lasts.as_secs().max(1) };
    let mut command = bench.command(cluster);
    transactions::log_to(&mut command, &logs);
    let running = process::start_captured(command, "pgbench", libc::SIGTERM)?;
    let server = cluster.postmaster()?;
    watch_over(running, watch, |_| descendants(server))?.success("pgbench")?;
    let done = transactions::read(&logs)?;
    done.iter().for_each(|t| clock.record(Duration::from_micros(t.took_us)));
    fs::remove_dir_all(&logs)?;
    Ok(done.len() as u64)
}
