//! etcd: puts a second, by its own benchmark if that is found, else by a load of ours; on this disk, and on one that
//! takes a millisecond over each flush, as volumes of clouds do.
//!
//! Its own one is not in distributions: docs/measure/BENCHMARKS.md has the commands that build it. It is named in
//! `SEAWALL_ETCD_BENCHMARK`. Ours asks the JSON gateway, which costs the server more for each put, so that the disk
//! matters less.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use seawall_load::etcd::Report;

use super::row::Row;
use crate::bench::Scope;
use crate::bench::slow_disk::SlowDisk;
use crate::etcd::{self, Server};
use crate::lab::Lab;
use crate::mount::Mount;
use crate::process::run;
use crate::side::{Preset, Side, order};

const CLIENTS: [u32; 4] = [1, 4, 16, 64];
/// One client waits for each flush, many share them.
const CLIENTS_SLOW: [u32; 3] = [1, 16, 64];
const FLUSH: Duration = Duration::from_millis(1);
/// Its log is preallocated by 64 MB, its store grows by the puts.
const SLOW_BYTES: u64 = 3 << 30;
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

fn slow_clients() -> &'static [u32] {
    if SlowDisk::is_possible() { &CLIENTS_SLOW } else { &[] }
}

pub fn steps(_: Scope) -> usize {
    (CLIENTS.len() + slow_clients().len()) * sides(0).len()
}

pub fn measure(lab: &Lab, scope: Scope) -> Result<Vec<Row>> {
    let mut rows = Disk { lab, scope, files: None }.measure(&CLIENTS)?;
    if !slow_clients().is_empty() {
        let disk = SlowDisk::mount(lab, SLOW_BYTES, FLUSH).context("the slow disk")?;
        rows.extend(Disk { lab, scope, files: Some(disk.path()) }.measure(slow_clients())?);
    }
    Ok(rows)
}

/// Where etcd's files are.
struct Disk<'a> {
    lab: &'a Lab,
    scope: Scope,
    /// On the slow disk.
    files: Option<&'a Path>,
}

impl Disk<'_> {
    fn measure(&self, clients: &[u32]) -> Result<Vec<Row>> {
        let mount = match self.files {
            None => Mount::start(self.lab, Preset::Etcd),
            Some(files) => Mount::start_on(self.lab, Preset::Etcd, files.join("behind-mount")),
        }?;
        let rows = clients.iter().map(|&clients| self.row(&mount, clients)).collect();
        mount.end()?;
        rows
    }

    fn row(&self, mount: &Mount<'_>, clients: u32) -> Result<Row> {
        let mut row = Row::new("etcd_put", self.shape(clients), "puts/s");
        for round in 0..self.scope.rounds {
            for side in sides(round) {
                let rate = self.run(mount, (side, clients, round)).with_context(|| side.title())?;
                row.add(self.lab, round, side, rate);
            }
        }
        Ok(row)
    }

    fn shape(&self, clients: u32) -> String {
        let plural = if clients == 1 { "client" } else { "clients" };
        let by = if own_benchmark().is_some() { "etcd's benchmark" } else { "by its JSON gateway" };
        let disk =
            if self.files.is_some() { format!(", {} ms a flush", FLUSH.as_millis()) } else { String::new() };
        format!("{clients} {plural}, {by}{disk}")
    }

    /// A new server; puts a second.
    fn run(&self, mount: &Mount<'_>, (side, clients, round): (Side, u32, usize)) -> Result<f64> {
        let lab = self.lab;
        // Removed with everything else: on the mount a guard stands in it until the log is closed.
        let name = format!("etcd-{}-{clients}-{round}", side.name());
        let data = match self.files {
            Some(files) if side != Side::Mount => files.join(name),
            _ => lab.data(side, &name),
        };
        lab.fresh_dir(&data)?;
        mount.settle()?;
        lab.settle()?;
        let server = Server::start(lab, side, &data)?;
        let seconds = if self.scope.quick { 1.0 } else { 4.0 };
        let rate = match own_benchmark() {
            Some(program) => benchmark(lab, &server, &program, clients, seconds),
            None => puts(lab, &server, clients, seconds),
        };
        server.stop()?;
        rate
    }
}

fn own_benchmark() -> Option<PathBuf> {
    std::env::var_os("SEAWALL_ETCD_BENCHMARK").map(PathBuf::from)
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
