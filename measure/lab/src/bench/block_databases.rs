//! `block_databases`: databases on the disk that their common log lies on, too; many commit at once.
//!
//! Sixteen clients of one PostgreSQL, and several SQLite and RocksDB programs at once, each with a database of its own.
//! Bare, each of those syncs its own file; under Seawall they have one log, and whoever waits at the same moment shares
//! a device write. Every run begins with empty databases, but for PostgreSQL's, whose server is started anew.
//!
//! And PostgreSQL once more with its data on a disk that was slowed down, while the log stays on the other one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use seawall_load::installed::Tool;
use seawall_load::sqlite::{JournalMode, Report};

use super::slow_disk::SlowDisk;
use super::stores::with_rates;
use super::{Fields, Scope, SectionResult, databases};
use crate::compare::{self, Three, Turns};
use crate::installed::{random_puts, read};
use crate::lab::Lab;
use crate::launch;
use crate::pg::{self, Bench, Cluster, Template, Test};
use crate::process;
use crate::side::{Preset, Side};
use crate::spread::Spread;
use crate::sqlite;
use crate::table::short;
use crate::tools::postgres_bin;

const POSTGRES_CLIENTS: usize = 16;
/// Programs at once: four for each of two CPUs, as busy small servers have.
pub const PROGRAMS: u32 = 8;
/// Bytes that the sides' databases and the log take on the disk.
pub const SPACE: u64 = 8 << 30;

/// What commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    Postgres,
    Sqlite,
    Rocksdb,
    /// Data on the slow disk.
    PostgresSlow,
}

/// A flush of the slow disk.
const FLUSH: Duration = Duration::from_millis(1);
/// Bytes of the slow disk: the sides' clusters, and their WAL.
const SLOW_BYTES: u64 = 6 << 30;

fn shapes() -> Vec<Shape> {
    let all = [Shape::Postgres, Shape::Sqlite, Shape::Rocksdb, Shape::PostgresSlow];
    all.into_iter().filter(|shape| *shape != Shape::PostgresSlow || SlowDisk::is_possible()).collect()
}

impl Shape {
    fn name(self) -> &'static str {
        match self {
            Shape::Postgres | Shape::PostgresSlow => "postgres",
            Shape::Sqlite => "sqlite",
            Shape::Rocksdb => "rocksdb",
        }
    }

    /// Who commits at once.
    fn many(self) -> String {
        match self {
            Shape::Postgres => format!("{}, {POSTGRES_CLIENTS} clients", Test::SimpleUpdate.name()),
            Shape::PostgresSlow => {
                let (test, ms) = (Test::SimpleUpdate.name(), FLUSH.as_millis());
                format!("{test}, {POSTGRES_CLIENTS} clients, data on a disk with flushes of {ms} ms")
            }
            Shape::Sqlite => format!("{PROGRAMS} programs, a database each, WAL"),
            Shape::Rocksdb => format!("{PROGRAMS} programs, a store each, fillrandom"),
        }
    }
}

/// Programs that are missing are named before anything is measured.
pub fn find_programs() -> Result<()> {
    postgres_bin()?;
    Tool::DbBench.find().map(drop)
}

/// How many steps there are.
pub fn steps(scope: Scope) -> usize {
    compare::steps(shapes().len(), scope.rounds)
}

/// One run.
pub struct Run {
    pub per_second: f64,
    /// Acknowledged.
    commits: u64,
}

/// What runs begin with, and what they did.
struct Scene<'a> {
    lab: &'a Lab,
    seconds: u64,
    postgres: PathBuf,
    db_bench: PathBuf,
    clusters: BTreeMap<(Shape, Side), PathBuf>,
    /// Commits that each PostgreSQL has reported.
    reported: BTreeMap<(Shape, Side), u64>,
    /// After everything on it.
    _slow: Option<SlowDisk>,
}

/// Measures everything. The lab's pool is the one on the disk.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let mut scene = Scene::set_up(lab, scope)?;
    let mut writes: BTreeMap<Shape, Vec<f64>> = BTreeMap::new();
    let (shapes, title) = (shapes(), |shape: &Shape| format!("{}, {}", shape.name(), shape.many()));
    let results =
        compare::rates(lab, "one log", &shapes, Turns::whole(scope.rounds), title, |side, shape| {
            if side != Side::Seawall {
                return Ok(scene.run(side, *shape)?.per_second);
            }
            let before = lab.pool.last_batch()?;
            let run = scene.run(side, *shape)?;
            let batches = lab.pool.last_batch()? - before;
            writes.entry(*shape).or_default().push(batches as f64 / run.commits.max(1) as f64);
            Ok(run.per_second)
        })?;
    let mut rows = Vec::new();
    let mut told = Vec::new();
    for (shape, rates) in shapes.iter().zip(&results) {
        let writes =
            writes.get(shape).and_then(|all| Spread::of(all)).context("Seawall was never measured")?;
        rows.push(row(*shape, rates, writes));
        told.push(format!("{}: {}", title(shape), short(writes.median)));
    }
    let names = shapes.iter().map(title).zip(results.iter().copied()).collect();
    let table = databases::table("One log on a disk, commits/s", "unsafe", names, lab.medium());
    Ok((rows, format!("{table}  device writes for each commit:\n    {}\n", told.join("\n    "))))
}

fn row(shape: Shape, rates: &Three, writes: Spread) -> Fields {
    let row = Fields::default().with("database", shape.name()).with("shape", shape.many());
    with_rates(row, rates).with_spread("device_writes", writes)
}

impl<'a> Scene<'a> {
    fn set_up(lab: &'a Lab, scope: Scope) -> Result<Self> {
        let postgres = postgres_bin()?;
        let scale = if scope.quick { 4 } else { 16 };
        let template = Template::create(lab, &postgres, scale)?;
        let slow = shapes().contains(&Shape::PostgresSlow);
        let slow =
            slow.then(|| SlowDisk::mount(lab, SLOW_BYTES, FLUSH)).transpose().context("the slow disk")?;
        let mut clusters = BTreeMap::new();
        for side in Side::CONTROLLED {
            clusters.insert((Shape::Postgres, side), template.copy_for(side)?);
            if let Some(slow) = &slow {
                let dir = slow.path().join(side.name());
                lab.fresh_dir(&dir)?;
                clusters.insert((Shape::PostgresSlow, side), template.copy_into(&dir)?);
            }
        }
        template.remove()?;
        let db_bench = Tool::DbBench.find()?;
        let seconds = if scope.quick { 1 } else { 4 };
        Ok(Scene { lab, seconds, postgres, db_bench, clusters, reported: BTreeMap::new(), _slow: slow })
    }

    fn run(&mut self, side: Side, shape: Shape) -> Result<Run> {
        match shape {
            Shape::Postgres | Shape::PostgresSlow => self.postgres(shape, side),
            Shape::Sqlite => sqlite_programs(self.lab, side, self.seconds),
            Shape::Rocksdb => self.rocksdb(side),
        }
    }

    fn postgres(&mut self, shape: Shape, side: Side) -> Result<Run> {
        let cluster = Cluster::start(self.lab, &self.postgres, side, &self.clusters[&(shape, side)])?;
        cluster.sql("CHECKPOINT")?;
        let bench = Bench { test: Test::SimpleUpdate, clients: POSTGRES_CLIENTS, seconds: self.seconds };
        let measured = bench.measure(&cluster)?;
        let reported = self.reported.entry((shape, side)).or_default();
        *reported += measured.transactions;
        pg::check_work(&cluster, *reported)?;
        cluster.stop()?;
        Ok(Run { per_second: measured.tps, commits: measured.transactions })
    }

    fn rocksdb(&self, side: Side) -> Result<Run> {
        let dir = self.lab.data(side, "rocksdb-many");
        self.lab.fresh_dir(&dir)?;
        let command = |n: u32| {
            let args = random_puts(&dir.join(n.to_string()), 1, self.seconds, !side.is_unsafe());
            launch::command(self.lab, side, Preset::Rocksdb, &dir, &self.db_bench, args)
        };
        let said = together("db_bench", (0..PROGRAMS).map(command))?;
        let mut all = Run { per_second: 0.0, commits: 0 };
        for said in said {
            let figures = read(Tool::DbBench, &said)?;
            all.per_second += figures.per_second;
            all.commits += figures.operations.context("db_bench counted nothing")?;
        }
        Ok(all)
    }
}

/// Several SQLite programs at once, each with an empty database of its own.
pub fn sqlite_programs(lab: &Lab, side: Side, seconds: u64) -> Result<Run> {
    let dir = lab.data(side, "sqlite-many");
    lab.fresh_dir(&dir)?;
    let place = |n: u32| dir.join(format!("bank{n}.db"));
    let command = |n: u32| {
        let shape = sqlite::Shape { journal: JournalMode::Wal, seconds: seconds as f64 };
        let args = sqlite::arguments(&place(n), side, shape);
        launch::command(lab, side, Preset::Sqlite, &dir, &lab.tools.load, args)
    };
    let said = together("the SQLite load", (0..PROGRAMS).map(command))?;
    let mut all = Run { per_second: 0.0, commits: 0 };
    for (n, json) in (0..).zip(said) {
        let report: Report = serde_json::from_slice(&json).context("the SQLite load's report")?;
        sqlite::check(lab, &place(n), report.commits)?;
        all.per_second += report.tps;
        all.commits += report.commits;
    }
    Ok(all)
}

/// Runs them all at once: what each has printed.
fn together(what: &str, commands: impl Iterator<Item = Result<Command>>) -> Result<Vec<Vec<u8>>> {
    let start = |command: Result<Command>| process::start_captured(command?, what, libc::SIGTERM);
    let running = commands.map(start).collect::<Result<Vec<_>>>()?;
    running.into_iter().map(|one| one.wait()?.success(what)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::keys;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        row(Shape::Sqlite, &Three::CONTROLLED, Spread::ONE).assert_keys(keys::BLOCK_DATABASES);
    }
}
