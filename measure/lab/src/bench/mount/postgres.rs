//! PostgreSQL: its WAL in the log by the mount, and by the preload.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::row::Row;
use crate::bench::Scope;
use crate::lab::Lab;
use crate::mount::Mount;
use crate::pg::{self, Bench, Cluster, Template, Test};
use crate::side::{Preset, Side};
use crate::tools::postgres_bin;

const SIDES: [Side; 3] = [Side::Fs, Side::Mount, Side::Seawall];
/// Once more with what `seawall tune postgres --mount` advises, on the mount alone.
const TUNED: [Side; 2] = [Side::Mount, Side::Seawall];
const SET: &str = "ALTER SYSTEM SET wal_sync_method = open_datasync";
const RESET: &str = "ALTER SYSTEM RESET wal_sync_method";

fn shapes(scope: Scope) -> Vec<Bench> {
    let clients: &[usize] = if scope.quick { &[8] } else { &[1, 4, 8] };
    let seconds = if scope.quick { 2 } else { 6 };
    clients.iter().map(|&clients| Bench { test: Test::SimpleUpdate, clients, seconds }).collect()
}

pub fn steps(scope: Scope) -> usize {
    shapes(scope).len() * (SIDES.len() + TUNED.len())
}

/// A shape's rows: as the server is, and tuned.
fn rows(shape: &Bench) -> [Row; 2] {
    let title = format!("{}, {}", shape.test.name(), shape.clients_in_words());
    let tuned = format!("{title}, open_datasync");
    [title, tuned].map(|title| Row::new("postgres", title, "tps"))
}

/// The servers run side by side, idle but one.
pub fn measure(lab: &Lab, scope: Scope) -> Result<Vec<Row>> {
    let bin = postgres_bin()?;
    let mount = Mount::start(lab, Preset::Postgres)?;
    let template = Template::create(lab, &bin, if scope.quick { 4 } else { 16 })?;
    let data: BTreeMap<_, _> = SIDES
        .into_iter()
        .map(|side| Ok((side, template.copy_for(side)?)))
        .collect::<Result<_>>()
        .context("copy the cluster")?;
    template.remove()?;
    let mut rows: Vec<_> = shapes(scope).iter().flat_map(rows).collect();
    let mut reported: BTreeMap<Side, u64> = BTreeMap::new();
    for round in 0..scope.rounds {
        let start = |side| Ok((side, Cluster::start(lab, &bin, side, &data[&side])?));
        let clusters: BTreeMap<Side, Cluster<'_>> = SIDES.into_iter().map(start).collect::<Result<_>>()?;
        for (shape, rows) in shapes(scope).iter().zip(rows.chunks_mut(2)) {
            for (row, (sides, setting)) in rows.iter_mut().zip([(&SIDES[..], RESET), (&TUNED, SET)]) {
                mount.settle()?;
                lab.settle()?;
                clusters[&Side::Mount].sql(setting)?;
                clusters[&Side::Mount].sql("SELECT pg_reload_conf()")?;
                for (side, work) in shape.in_turns(&clusters, sides, round)? {
                    row.add(lab, round, side, work.rate);
                    *reported.entry(side).or_default() += work.count;
                }
            }
        }
        for (side, cluster) in clusters {
            pg::check_work(&cluster, reported[&side]).context(side.title())?;
            cluster.stop()?;
        }
    }
    mount.end()?;
    Ok(rows)
}
