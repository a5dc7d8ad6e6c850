//! `postgres_atomic`: no page can be torn, so PostgreSQL need not write whole pages into its WAL.
//!
//! Data are larger than `shared_buffers` and a checkpoint comes every 30 s: pages are written all the time, and
//! each first change after a checkpoint costs a full page of WAL on the sides that must protect it. Servers run
//! one after another: the checkpoint of an idle one would fall into another one's run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::stores::with_rates;
use super::{Fields, Scope, SectionResult, databases};
use crate::compare::{Samples, Three};
use crate::lab::Lab;
use crate::pg::{Bench, Cluster, Template, Test, Variant, check_work};
use crate::side::{Preset, Side, order};
use crate::table::{short, thousands};
use crate::tools::postgres_bin;

const VARIANT: Variant = Variant {
    settings: &[("shared_buffers", "128MB"), ("checkpoint_timeout", "30s")],
    on_seawall: &[("full_page_writes", "off")],
    preset: Preset::PostgresAtomic,
};
/// Some 480 MB of data.
const SCALE: u32 = 32;
const CLIENTS: usize = 8;
/// What three clusters take on the disk, with their WAL.
pub const SPACE: u64 = 6 << 30;

fn shape(scope: Scope) -> Bench {
    let seconds = if scope.quick { 2 } else { 35 };
    Bench { test: Test::SimpleUpdate, clients: CLIENTS, seconds }
}

/// How many steps the section takes.
pub fn steps(scope: Scope) -> usize {
    1 + scope.rounds * Side::DATABASES.len()
}

/// The section.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let bin = postgres_bin()?;
    let clusters = create(lab, &bin)?;
    let (mut tps, mut wal, mut wal_of_one) = (Samples::default(), Samples::default(), Samples::default());
    for round in 0..scope.rounds {
        for side in order(&Side::DATABASES, round) {
            let what = format!("round {}: PostgreSQL, whole pages, {}", round + 1, side.title());
            lab.progress.doing(&what);
            let run =
                measure(lab, &bin, side, &clusters[&side], shape(scope)).with_context(|| what.clone())?;
            lab.progress.done(&format!(
                "{what}: {} tps, {} MB of WAL",
                thousands(run.tps),
                short(run.wal_mb)
            ));
            tps.add(side, run.tps);
            wal.add(side, run.wal_mb);
            wal_of_one.add(side, run.wal_mb / run.transactions.max(1) as f64);
        }
    }
    let (tps, wal, wal_of_one) = (tps.three()?, wal.three()?, wal_of_one.three()?);
    let names = vec![(format!("simple-update, {CLIENTS} clients"), tps)];
    let mut table = databases::table("PostgreSQL atomic, tps", "fsync=off", names, lab.medium());
    table += &format!(
        "  WAL of a run: {} MB with Seawall, {} MB with fsync=off; of a transaction: {} of it\n",
        short(wal.seawall.median),
        short(wal.unsafe_bound.median),
        short(wal_of_one.of_unsafe.median)
    );
    Ok((vec![row(&tps, &wal, &wal_of_one)], table))
}

fn create(lab: &Lab, bin: &Path) -> Result<BTreeMap<Side, PathBuf>> {
    lab.progress.doing("PostgreSQL atomic: initdb and pgbench -i");
    let template = Template::create(lab, bin, SCALE)?;
    let copy = |side| Ok((side, template.copy_for(side)?));
    let clusters = Side::DATABASES.into_iter().map(copy).collect::<Result<_>>()?;
    template.remove()?;
    lab.progress.done(&format!("PostgreSQL atomic: three equal clusters, scale {SCALE}"));
    Ok(clusters)
}

/// One run.
struct Run {
    tps: f64,
    transactions: u64,
    wal_mb: f64,
}

fn measure(lab: &Lab, bin: &Path, side: Side, data: &Path, shape: Bench) -> Result<Run> {
    let cluster = Cluster::start_as(lab, bin, side, data, &VARIANT)?;
    cluster.sql("CHECKPOINT")?;
    lab.settle()?;
    let before = wal_bytes(&cluster)?;
    let measured = shape.measure(&cluster)?;
    let wal = wal_bytes(&cluster)? - before;
    check_work(&cluster, measured.transactions)?;
    cluster.stop()?;
    lab.settle()?;
    Ok(Run { tps: measured.tps, transactions: measured.transactions, wal_mb: wal / 1e6 })
}

/// How much WAL the cluster has written since it was made.
fn wal_bytes(cluster: &Cluster<'_>) -> Result<f64> {
    Ok(cluster.query("SELECT pg_current_wal_insert_lsn() - '0/0'")?.parse()?)
}

fn row(tps: &Three, wal: &Three, wal_of_one: &Three) -> Fields {
    let row = Fields::default().with("clients", CLIENTS).with("test", Test::SimpleUpdate.name());
    with_rates(row, tps)
        .with_spread("seawall_wal_mb", wal.seawall)
        .with_spread("unsafe_wal_mb", wal.unsafe_bound)
        .with_spread("wal_share", wal_of_one.of_unsafe)
}

#[cfg(test)]
mod tests {
    use super::super::keys;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        row(&Three::ONE, &Three::ONE, &Three::ONE).assert_keys(keys::POSTGRES_ATOMIC);
    }
}
