//! Databases on a log in other hosts' memory: several SQLite programs, PostgreSQL with its data on a slow disk, Redis.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use super::super::Scope;
use super::super::block_databases::{PROGRAMS, sqlite_programs};
use super::super::slow_disk::SlowDisk;
use super::super::stores::redis_once;
use super::kept::with_keepers;
use super::row::{Against, Row};
use crate::compare::{self, Turns};
use crate::installed::Sets;
use crate::keepers::Shape;
use crate::lab::Lab;
use crate::pg::{self, Bench, Cluster, Template, Test};
use crate::side::Side;
use crate::tools::postgres_bin;

const CLIENTS: [usize; 3] = [1, 4, 16];
/// A flush of the data's disk, and bytes of that disk: the sides' clusters, and their WAL.
const FLUSH: Duration = Duration::from_millis(1);
const SLOW_BYTES: u64 = 6 << 30;
/// A round trip of 200 µs.
const POSTGRES: Shape = Shape::of(3, 100);
const SQLITE: Shape = Shape::of(3, 0);
/// Both of them: as many copies as the study had.
const REDIS: Shape = Shape { acks: 2, ..Shape::of(2, 0) };
const SETS: Sets = Sets { clients: 50, pipeline: 1 };

fn is_slow_disk_possible() -> bool {
    SlowDisk::is_possible()
}

/// How many steps there are.
pub fn steps(scope: Scope) -> usize {
    let postgres = if is_slow_disk_possible() { CLIENTS.len() } else { 0 };
    compare::steps(postgres + 2, scope.rounds)
}

/// All rows; where we may not mount the slow disk, without PostgreSQL's.
pub fn run(lab: &mut Lab, scope: Scope) -> Result<Vec<Row>> {
    let mut rows = vec![sqlite(lab, scope)?, redis(lab, scope)?];
    if is_slow_disk_possible() {
        rows.extend(postgres(lab, scope)?);
    }
    Ok(rows)
}

fn seconds(scope: Scope) -> u64 {
    if scope.quick { 1 } else { 4 }
}

fn sqlite(lab: &mut Lab, scope: Scope) -> Result<Row> {
    let load = format!("{PROGRAMS} programs, a database each, WAL");
    let rates = with_keepers(lab, SQLITE, scope.pool, |lab, _| {
        let measure = |side, _: &()| Ok(sqlite_programs(lab, side, seconds(scope))?.per_second);
        compare::rates(lab, "SQLite", &[()], Turns::whole(scope.rounds), |()| load.clone(), measure)
    })?;
    Ok(Row::of_rates(("sqlite", load), SQLITE, &rates[0], Against::Bare, 2.0))
}

fn redis(lab: &mut Lab, scope: Scope) -> Result<Row> {
    let load = format!("SET, {} clients, appendfsync always", SETS.clients);
    let rates = with_keepers(lab, REDIS, scope.pool, |lab, _| {
        let data = lab.work.data("redis");
        let measure = |side, _: &()| {
            lab.fresh_dir(&data)?;
            redis_once(lab, side, &data, SETS, seconds(scope))
        };
        compare::rates(lab, "Redis", &[()], Turns::whole(scope.rounds), |()| load.clone(), measure)
    })?;
    Ok(Row::of_rates(("redis", load), REDIS, &rates[0], Against::Bare, 1.28))
}

fn postgres(lab: &mut Lab, scope: Scope) -> Result<Vec<Row>> {
    let load = |clients: &usize| {
        format!("simple-update, {clients} clients, data on a disk with flushes of {} ms", FLUSH.as_millis())
    };
    let bin = postgres_bin()?;
    let rates = with_keepers(lab, POSTGRES, scope.pool, |lab, _| {
        let slow = SlowDisk::mount(lab, SLOW_BYTES, FLUSH).context("the slow disk")?;
        let mut clusters = Clusters::create(lab, &bin, &slow, scope)?;
        let turns = Turns::whole(scope.rounds);
        let rates = compare::rates(lab, "PostgreSQL", &CLIENTS, turns, load, |side, clients| {
            clusters.run(side, *clients, seconds(scope))
        });
        // What its data lies on goes next.
        lab.pool.stop()?;
        rates
    })?;
    let both = |(clients, rates)| {
        [(Against::Unsafe, 0.8), (Against::Bare, 2.0)].map(|(against, least)| {
            Row::of_rates(("postgres", load(clients)), POSTGRES, rates, against, least)
        })
    };
    Ok(CLIENTS.iter().zip(&rates).flat_map(both).collect())
}

/// The sides' clusters on the slow disk, and what each has reported.
struct Clusters<'a> {
    lab: &'a Lab,
    bin: &'a PathBuf,
    data: BTreeMap<Side, PathBuf>,
    reported: BTreeMap<Side, u64>,
}

impl<'a> Clusters<'a> {
    fn create(lab: &'a Lab, bin: &'a PathBuf, slow: &SlowDisk, scope: Scope) -> Result<Self> {
        let template = Template::create(lab, bin, if scope.quick { 4 } else { 16 })?;
        let mut data = BTreeMap::new();
        for side in Side::CONTROLLED {
            let dir = slow.path().join(side.name());
            lab.fresh_dir(&dir)?;
            data.insert(side, template.copy_into(&dir)?);
        }
        template.remove()?;
        Ok(Clusters { lab, bin, data, reported: BTreeMap::new() })
    }

    fn run(&mut self, side: Side, clients: usize, seconds: u64) -> Result<f64> {
        let cluster = Cluster::start(self.lab, self.bin, side, &self.data[&side])?;
        cluster.sql("CHECKPOINT")?;
        let measured = Bench { test: Test::SimpleUpdate, clients, seconds }.measure(&cluster)?;
        let reported = self.reported.entry(side).or_default();
        *reported += measured.transactions;
        pg::check_work(&cluster, *reported)?;
        cluster.stop()?;
        Ok(measured.tps)
    }
}
