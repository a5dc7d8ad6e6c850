//! Single files: durable writes, cached reads, large sequential reads and writes.
//!
//! A file that is in the log goes through the mount's process and the kernel's cache of the mount; one that no
//! preset wants is read and written past it, if root mounts.

use std::path::Path;

use anyhow::{Context, Result};
use seawall_load::stream::Report;
use seawall_load::write::Pattern;

use super::row::Row;
use crate::bench::Scope;
use crate::bench::measure::{self, Shape, describe};
use crate::lab::Lab;
use crate::mount::Mount;
use crate::process::run;
use crate::side::{Preset, Side, order};

/// Read from the cache.
const CACHED_BYTES: u64 = 64 << 20;
const FILE_BYTES: u64 = 64 << 20;

/// What a file is to the mount, and a name that makes it so.
const FILES: [(&str, Preset, &str); 2] =
    [("in the log", Preset::Sqlite, "stream.db-wal"), ("past the mount", Preset::Postgres, "stream.dat")];
const BOTH: [Side; 2] = [Side::Fs, Side::Mount];
const ALL: [Side; 3] = [Side::Fs, Side::Mount, Side::Seawall];

fn shapes(scope: Scope) -> Vec<Shape> {
    let shape = |pattern, threads| Shape::shared(8192, pattern, threads, 1);
    let one = [Pattern::Random, Pattern::Append].map(|pattern| shape(pattern, 1));
    let more = [shape(Pattern::Sequential, 1), shape(Pattern::Random, 4)];
    one.into_iter().chain(more.into_iter().filter(|_| !scope.quick)).collect()
}

/// What is streamed.
fn large(scope: Scope) -> u64 {
    if scope.quick { 128 << 20 } else { 1 << 30 }
}

/// How many steps the section takes.
pub fn steps(scope: Scope) -> usize {
    scope.rounds * (shapes(scope).len() * ALL.len() + FILES.len() * 3 * BOTH.len())
}

pub fn measure(lab: &Lab, scope: Scope) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (what, preset, name) in FILES {
        let mount = Mount::start(lab, preset)?;
        if matches!(preset, Preset::Sqlite) {
            rows.extend(writes(lab, &mount, scope)?);
        }
        rows.extend(streams(lab, &mount, scope, what, name)?);
        mount.end()?;
    }
    Ok(rows)
}

fn writes(lab: &Lab, mount: &Mount, scope: Scope) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for shape in shapes(scope) {
        let mut row = Row::new("write_fdatasync", describe(&shape), "ops/s");
        for round in 0..scope.rounds {
            for side in order(&ALL, round) {
                mount.settle()?;
                let ops = lab.pool.size() / 2 / shape.bs;
                let limits = [
                    ("--ops", ops.min(10_000).to_string()),
                    ("--seconds", if scope.quick { "0.5" } else { "1.5" }.to_owned()),
                ];
                let amount = (FILE_BYTES, &limits[..]);
                let measured = measure::measure(lab, side, shape, "mount", amount, round)?;
                row.rates.add(side, measured.report.ops_per_s);
            }
        }
        rows.push(row);
    }
    Ok(rows)
}

fn streams(lab: &Lab, mount: &Mount, scope: Scope, what: &str, name: &str) -> Result<Vec<Row>> {
    let shape = |text: &str| format!("{text}, a file {what}");
    let mut cached = Row::new("cached_read", shape("8 KiB random"), "reads/s");
    let mut read = Row::new("sequential_read", shape("1 MiB"), "MB/s");
    let mut write = Row::new("sequential_write", shape("1 MiB"), "MB/s");
    // Uncounted: a virtual machine's memory is slow to be written for the first time, and a file's blocks to be found.
    for side in BOTH {
        let dir = lab.data(side, "stream");
        if !dir.exists() {
            lab.fresh_dir(&dir)?;
        }
        stream(lab, &dir.join(name), "write", large(scope), &[])?;
    }
    for round in 0..scope.rounds {
        for side in order(&BOTH, round) {
            let dir = lab.data(side, "stream");
            mount.settle()?;
            lab.settle()?;
            let stream = |op: &str, size: u64, more: &[&str]| stream(lab, &dir.join(name), op, size, more);
            write.add(lab, round, side, stream("write", large(scope), &[])?.mb_s);
            mount.settle()?;
            let mut cold = vec![dir.join(name)];
            if side == Side::Mount {
                // The kernel may cache it twice.
                cold.push(mount.behind().join("stream").join(name));
            }
            let cold: Vec<String> = cold.iter().map(|path| path.display().to_string()).collect();
            let cold: Vec<&str> = cold.iter().flat_map(|path| ["--cold", path.as_str()]).collect();
            read.add(lab, round, side, stream("read", large(scope), &cold)?.mb_s);
            stream("read", CACHED_BYTES, &[])?;
            let seconds = if scope.quick { "0.5" } else { "2" };
            let random = stream("random", CACHED_BYTES, &["--bs", "8192", "--seconds", seconds])?;
            cached.add(lab, round, side, random.blocks_s);
        }
    }
    Ok(vec![cached, read, write])
}

fn stream(lab: &Lab, file: &Path, op: &str, size: u64, more: &[&str]) -> Result<Report> {
    let mut load = lab.command(&lab.tools.load);
    load.args(["stream", "--op", op, "--size", &size.to_string(), "--file"]).arg(file).args(more);
    serde_json::from_slice(&run(load, "the stream load")?).context("cannot read the stream load's report")
}
