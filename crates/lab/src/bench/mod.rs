//! `bench`: every figure as a ratio against named baselines, all sides interleaved in one run.
//!
//! Output: `bench.json` (its keys: [`keys`], and docs/BENCHMARKS.md) and tables. Figures are medians over rounds, with
//! `_min` and `_max` beside them. Nothing is asserted about speed here: it is printed.

mod databases;
mod disk;
mod fields;
mod keys;
mod mariadb;
mod measure;
mod page;
mod stores;
mod sustained;
mod write;

use std::fs;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::cli::{BenchOptions, Section};
use crate::compare;
use crate::lab::Lab;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::tools;
use fields::Fields;
pub use page::write as write_page;

/// Everything measured, as written to `bench.json`.
#[derive(Serialize)]
struct Results {
    /// The pool's medium, as `seawall status` names it: it belongs to every `seawall_*` figure.
    medium: String,
    machine: Machine,
    pool_mb: u64,
    rounds: usize,
    quick: bool,
    write_fdatasync: Vec<Fields>,
    sustained: Vec<Fields>,
    postgres: Vec<Fields>,
    sqlite: Vec<Fields>,
    mariadb: Vec<Fields>,
    redis: Vec<Fields>,
    rocksdb: Vec<Fields>,
    lmdb: Vec<Fields>,
}

/// What a section needs to know about the run.
#[derive(Clone, Copy)]
struct Scope {
    quick: bool,
    rounds: usize,
}

/// Runs the chosen sections.
pub fn run(options: &BenchOptions) -> Result<()> {
    let scope =
        Scope { quick: options.quick, rounds: options.rounds.unwrap_or(if options.quick { 2 } else { 3 }) };
    let has = |section| options.only.is_empty() || options.only.contains(&section);
    // Missing programs are named before anything is measured.
    let bin = if has(Section::Postgres) { Some(tools::postgres_bin()?) } else { None };
    if has(Section::Write) || has(Section::Sustained) {
        tools::eatmydata_library()?;
    }
    if has(Section::Mariadb) {
        mariadb::find_programs()?;
    }
    stores::find_programs(has(Section::Redis), has(Section::Rocksdb))?;
    let steps = [
        (Section::Write, write::steps(scope)),
        (Section::Sustained, sustained::steps(scope)),
        (Section::Postgres, databases::postgres_steps(scope)),
        (Section::Sqlite, databases::sqlite_steps(scope)),
        (Section::Mariadb, mariadb::steps(scope)),
        (Section::Redis, stores::redis_steps(scope)),
        (Section::Rocksdb, stores::rocksdb_steps(scope)),
        (Section::Lmdb, stores::lmdb_steps(scope)),
    ];
    let steps = steps.iter().filter(|(section, _)| has(*section)).map(|(_, steps)| steps).sum();
    let spaces = [
        (Section::Write, write::space()),
        (Section::Sustained, sustained::space(options.common.pool_size, scope)),
        (Section::Postgres, compare::postgres_space(databases::scale(scope))),
        (Section::Mariadb, mariadb::SPACE),
        (Section::Rocksdb, stores::SPACE),
    ];
    let space = spaces.iter().filter(|(section, _)| has(*section)).map(|(_, bytes)| bytes).sum();
    let lab = Lab::set_up(&options.common, Progress::new(steps), space)?;
    let mut results = Results {
        medium: lab.medium().to_owned(),
        machine: lab.machine.clone(),
        pool_mb: lab.pool.size() >> 20,
        rounds: scope.rounds,
        quick: scope.quick,
        write_fdatasync: Vec::new(),
        sustained: Vec::new(),
        postgres: Vec::new(),
        sqlite: Vec::new(),
        mariadb: Vec::new(),
        redis: Vec::new(),
        rocksdb: Vec::new(),
        lmdb: Vec::new(),
    };
    let mut tables = String::new();
    if has(Section::Write) {
        (results.write_fdatasync, tables) = append(tables, write::run(&lab, scope)?);
    }
    if has(Section::Sustained) {
        (results.sustained, tables) = append(tables, sustained::run(&lab, scope)?);
    }
    if let Some(bin) = &bin {
        (results.postgres, tables) = append(tables, databases::postgres(&lab, bin, scope)?);
    }
    if has(Section::Sqlite) {
        (results.sqlite, tables) = append(tables, databases::sqlite(&lab, scope)?);
    }
    if has(Section::Mariadb) {
        (results.mariadb, tables) = append(tables, mariadb::measure(&lab, scope)?);
    }
    if has(Section::Redis) {
        (results.redis, tables) = append(tables, stores::redis(&lab, scope)?);
    }
    if has(Section::Rocksdb) {
        (results.rocksdb, tables) = append(tables, stores::rocksdb(&lab, scope)?);
    }
    if has(Section::Lmdb) {
        (results.lmdb, tables) = append(tables, stores::lmdb(&lab, scope)?);
    }
    lab.progress.finish();
    drop(lab);
    print!("{tables}");
    println!("\n  medium of the log: {}", results.medium);
    println!("  data on:           {}", results.machine.filesystem);
    let path = options.common.out.join("bench.json");
    fs::write(&path, serde_json::to_vec_pretty(&results)?)
        .with_context(|| format!("write {}", path.display()))?;
    println!("\nAll figures: {}", path.display());
    Ok(())
}

/// A section's rows and its table.
type SectionResult = (Vec<Fields>, String);

fn append(tables: String, (rows, table): SectionResult) -> SectionResult {
    (rows, tables + "\n" + &table)
}
