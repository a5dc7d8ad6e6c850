//! `redis`, `rocksdb` and `lmdb`: operations a second on every side.
//!
//! Each measurement begins with an empty database; the sides of a shape follow one another.

use std::path::Path;

use anyhow::Result;
use seawall_load::installed::Tool;
use seawall_load::store::Store;

use super::{Fields, Scope, SectionResult, databases};
use crate::compare::{self, Three, Turns};
use crate::installed::{Sets, random_puts, read};
use crate::lab::Lab;
use crate::launch;
use crate::process::run;
use crate::redis::{Fsync, Server};
use crate::side::{Preset, Side};
use crate::store::Program;

const REDIS: [Sets; 3] =
    [Sets { clients: 1, pipeline: 1 }, Sets { clients: 50, pipeline: 1 }, Sets { clients: 50, pipeline: 16 }];
/// db_bench's `--threads`.
const ROCKSDB: [u32; 2] = [1, 4];
const LMDB: [&str; 1] = ["one put a transaction"];

/// What the sections' databases take on the disk.
pub const SPACE: u64 = 2 << 30;

fn seconds(scope: Scope) -> u64 {
    if scope.quick { 1 } else { 4 }
}

/// How many steps the sections take.
pub fn redis_steps(scope: Scope) -> usize {
    compare::steps(REDIS.len(), scope.rounds)
}

pub fn rocksdb_steps(scope: Scope) -> usize {
    compare::steps(ROCKSDB.len(), scope.rounds)
}

pub fn lmdb_steps(scope: Scope) -> usize {
    compare::steps(LMDB.len(), scope.rounds)
}

/// Programs that are missing are named before anything is measured.
pub fn find_redis() -> Result<()> {
    crate::redis::program()?;
    Tool::RedisBenchmark.find().map(drop)
}

/// The same for RocksDB.
pub fn find_rocksdb() -> Result<()> {
    Tool::DbBench.find().map(drop)
}

/// redis-benchmark's SET.
pub fn redis(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let title = |shape: &Sets| format!("{} clients, pipeline {}", shape.clients, shape.pipeline);
    let data = lab.work.data("redis");
    let results = compare::rates(lab, "Redis", &REDIS, Turns::whole(scope.rounds), title, |side, shape| {
        lab.fresh_dir(&data)?;
        redis_once(lab, side, &data, *shape, seconds(scope))
    })?;
    let rows = REDIS.iter().zip(&results).map(|(shape, rates)| redis_row(*shape, rates));
    let names = REDIS.iter().map(title).zip(results.iter().copied()).collect();
    Ok((rows.collect(), databases::table("Redis, SET/s", "appendfsync no", names, lab.medium())))
}

/// One run from an empty database.
pub fn redis_once(lab: &Lab, side: Side, data: &Path, shape: Sets, seconds: u64) -> Result<f64> {
    let fsync = if side.is_unsafe() { Fsync::No } else { Fsync::Always };
    let server = Server::start(lab, side, data, fsync)?;
    let (figures, _) = shape.run(lab, &server, seconds as f64)?;
    server.stop()?;
    Ok(figures.per_second)
}

/// db_bench's fillrandom.
pub fn rocksdb(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let title = |threads: &u32| format!("fillrandom, {threads} threads");
    let (program, data) = (Tool::DbBench.find()?, lab.work.data("rocksdb"));
    let results =
        compare::rates(lab, "RocksDB", &ROCKSDB, Turns::whole(scope.rounds), title, |side, threads| {
            lab.fresh_dir(&data)?;
            let args = random_puts(&data, *threads, seconds(scope), !side.is_unsafe());
            let command = launch::command(lab, side, Preset::Rocksdb, &data, &program, args)?;
            Ok(read(Tool::DbBench, &run(command, "db_bench")?)?.per_second)
        })?;
    let rows = ROCKSDB.iter().zip(&results).map(|(threads, rates)| rocksdb_row(*threads, rates));
    let names = ROCKSDB.iter().map(title).zip(results.iter().copied()).collect();
    Ok((rows.collect(), databases::table("RocksDB, puts/s", "sync=0", names, lab.medium())))
}

/// One put after another, each a transaction.
pub fn lmdb(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let (program, data) = (Program::build(lab, Store::Lmdb, "")?, lab.work.data("lmdb"));
    let title = |shape: &&str| (*shape).to_owned();
    let results = compare::rates(lab, "LMDB", &LMDB, Turns::whole(scope.rounds), title, |side, _| {
        lab.fresh_dir(&data)?;
        program.measure(lab, side, &data, seconds(scope) as f64)
    })?;
    let rows = LMDB.iter().zip(&results).map(|(shape, rates)| lmdb_row(shape, rates));
    let names = LMDB.iter().map(title).zip(results.iter().copied()).collect();
    Ok((rows.collect(), databases::table("LMDB, commits/s", "MDB_NOSYNC", names, lab.medium())))
}

fn redis_row(shape: Sets, rates: &Three) -> Fields {
    with_rates(Fields::default().with("clients", shape.clients).with("pipeline", shape.pipeline), rates)
}

fn rocksdb_row(threads: u32, rates: &Three) -> Fields {
    with_rates(Fields::default().with("test", "fillrandom").with("threads", threads), rates)
}

fn lmdb_row(shape: &str, rates: &Three) -> Fields {
    with_rates(Fields::default().with("test", shape), rates)
}

/// A row's rates on every side.
pub fn with_rates(row: Fields, rates: &Three) -> Fields {
    row.with_spread("fs", rates.fs)
        .with_spread("seawall", rates.seawall)
        .with_spread("unsafe", rates.unsafe_bound)
        .with_spread("of_unsafe", rates.of_unsafe)
        .with_control(rates)
        .with_spread("speedup", rates.speedup)
}

#[cfg(test)]
mod tests {
    use super::super::keys;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        let rates = Three::CONTROLLED;
        redis_row(REDIS[0], &rates).assert_keys(keys::REDIS);
        rocksdb_row(1, &rates).assert_keys(keys::ROCKSDB);
        lmdb_row(LMDB[0], &rates).assert_keys(keys::LMDB);
    }
}
