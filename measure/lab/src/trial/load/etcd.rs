//! etcd: puts, by its own benchmark if `SEAWALL_ETCD_BENCHMARK` names it, else by a load of ours.
//!
//! Its own one is not in distributions: docs/measure/LAB.md has the commands that build it. Ours asks the JSON gateway,
//! which costs the server more for each put, so that the disk matters less.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use seawall_load::etcd::Report;

use super::Loaded;
use crate::case::Measure;
use crate::etcd::Server;
use crate::lab::Lab;
use crate::process::run as finish;

const VALUE_BYTES: &str = "256";

/// Runs it to its end.
pub fn run(lab: &Lab, server: &Server, clients: u32, seconds: u64) -> Result<Loaded> {
    let own = std::env::var_os("SEAWALL_ETCD_BENCHMARK").map(PathBuf::from);
    let (commits, rate) = match own {
        Some(program) => benchmark(lab, server, &program, clients, seconds)?,
        None => puts(lab, server, clients, seconds)?,
    };
    Ok(Loaded { commits, figures: vec![(Measure::Throughput, rate)] })
}

fn puts(lab: &Lab, server: &Server, clients: u32, seconds: u64) -> Result<(u64, f64)> {
    let mut load = lab.command(&lab.tools.load);
    load.args(["ledger-etcd", "--bytes", VALUE_BYTES, "--connect", server.address()]);
    load.args(["--clients", &clients.to_string(), "--seconds", &seconds.to_string()]);
    let report: Report = serde_json::from_slice(&finish(load, "the etcd load")?)
        .context("cannot read the etcd load's report")?;
    ensure!(report.disconnects.is_empty(), "clients lost their connections: {:?}", report.disconnects);
    Ok((report.acknowledged, report.acknowledged as f64 / report.seconds))
}

/// It counts puts, not seconds.
fn benchmark(lab: &Lab, server: &Server, program: &Path, clients: u32, seconds: u64) -> Result<(u64, f64)> {
    let ask = |total: u64| -> Result<f64> {
        let mut bench = lab.command(program);
        bench.args(["put", "--endpoints", server.address(), "--val-size", VALUE_BYTES, "--key-size", "32"]);
        bench.args(["--sequential-keys", "--key-space-size", "1000000", "--total", &total.to_string()]);
        bench.args(["--clients", &clients.to_string(), "--conns", &clients.to_string()]);
        let said = String::from_utf8(finish(bench, "etcd's benchmark")?)?;
        let line = said.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"));
        line.and_then(|rate| rate.trim().parse().ok())
            .with_context(|| format!("etcd's benchmark printed no rate: {said:?}"))
    };
    let few = u64::from(clients) * 20 + 200;
    let puts = (ask(few)? * seconds as f64) as u64 + 1;
    Ok((few + puts, ask(puts)?))
}
