//! etcd: puts a second, by its own benchmark if that is found, else by a load of ours.
//!
//! Its own one is not in distributions. Name it in `SEAWALL_ETCD_BENCHMARK`: the program that
//! `go.etcd.io/etcd/tools/benchmark` builds. Ours asks the JSON gateway, which costs the server more for each put, so
//! that the disk matters less.

use std::path::PathBuf;

use anyhow::{Context, Result};
use seawall_load::etcd::Report;

use super::Row;
use crate::bench::Scope;
use crate::etcd::{self, Server};
use crate::lab::Lab;
use crate::mount::Mount;
use crate::process::run;
use crate::side::{Preset, Side, order};

const CLIENTS: [u32; 4] = [1, 4, 16, 64];
const VALUE_BYTES: &str = "256";

/// Programs that are missing are named before anything is measured.
pub fn find_programs() -> Result<()> {
    crate::tools::postgres_bin()?;
    etcd::program().map(drop)
}

/// With the side that does not sync, if this etcd has it.
fn sides(round: usize) -> Vec<Side> {
    let unsafe_bound = etcd::can_be_unsafe().then_some(Side::Unsafe);
    order(&[Side::Fs, Side::Mount], round).into_iter().chain(unsafe_bound).collect()
}

pub fn steps(_: Scope) -> usize {
    CLIENTS.len() * sides(0).len()
}

pub fn measure(lab: &Lab, scope: Scope) -> Result<Vec<Row>> {
    let mount = Mount::start(lab, Preset::Etcd)?;
    let own = std::env::var_os("SEAWALL_ETCD_BENCHMARK").map(PathBuf::from);
    let by = if own.is_some() { "etcd's benchmark" } else { "by its JSON gateway" };
    let mut rows = Vec::new();
    for clients in CLIENTS {
        let plural = if clients == 1 { "client" } else { "clients" };
        let mut row = Row::new("etcd_put", format!("{clients} {plural}, {by}"), "puts/s");
        for round in 0..scope.rounds {
            for side in sides(round) {
                // Removed with everything else: on the mount a guard stands in it until the log is closed.
                let data = lab.data(side, &format!("etcd-{}-{clients}-{round}", side.name()));
                lab.fresh_dir(&data)?;
                mount.settle()?;
                lab.settle()?;
                let server = Server::start(lab, side, &data)?;
                let seconds = if scope.quick { 1.0 } else { 4.0 };
                let rate = match &own {
                    Some(program) => benchmark(lab, &server, program, clients, seconds),
                    None => puts(lab, &server, clients, seconds),
                };
                row.add(lab, round, side, rate.with_context(|| side.title())?);
                server.stop()?;
            }
        }
        rows.push(row);
    }
    mount.end()?;
    Ok(rows)
}

fn puts(lab: &Lab, server: &Server, clients: u32, seconds: f64) -> Result<f64> {
    let mut load = lab.command(&lab.tools.load);
    load.args(["ledger-etcd", "--bytes", VALUE_BYTES, "--connect", server.address()]);
    load.args(["--clients", &clients.to_string(), "--seconds", &seconds.to_string()]);
    let report: Report = serde_json::from_slice(&run(load, "the etcd load")?).context("its report")?;
    anyhow::ensure!(
        report.disconnects.is_empty(),
        "clients lost their connections: {:?}",
        report.disconnects
    );
    Ok(report.acknowledged as f64 / report.seconds)
}

/// It counts puts, not seconds.
fn benchmark(lab: &Lab, server: &Server, program: &PathBuf, clients: u32, seconds: f64) -> Result<f64> {
    let ask = |total: u64| -> Result<f64> {
        let mut bench = lab.command(program);
        bench.args(["put", "--endpoints", server.address(), "--val-size", VALUE_BYTES, "--key-size", "32"]);
        bench.args(["--sequential-keys", "--key-space-size", "1000000", "--total", &total.to_string()]);
        bench.args(["--clients", &clients.to_string(), "--conns", &clients.to_string()]);
        let said = String::from_utf8(run(bench, "etcd's benchmark")?)?;
        let line = said.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"));
        line.and_then(|rate| rate.trim().parse().ok()).with_context(|| format!("it said {said:?}"))
    };
    let probed = ask(u64::from(clients) * 20 + 200)?;
    ask((probed * seconds) as u64 + 1)
}
