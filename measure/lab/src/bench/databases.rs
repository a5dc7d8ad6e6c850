//! `postgres` and `sqlite`: transactions a second on every side.

use anyhow::Result;
use seawall_load::sqlite::JournalMode;

use super::{Fields, Scope, SectionResult};
use crate::compare::{self, Clusters, Three};
use crate::lab::Lab;
use crate::pg::{Bench, Test};
use crate::side::Side;
use crate::spread::Spread;
use crate::sqlite::Shape;
use crate::table::{self, short, thousands};
use crate::tools::postgres_bin;

fn pg_shapes(scope: Scope) -> Vec<Bench> {
    if scope.quick {
        return [1, 8].map(|clients| Bench { test: Test::SimpleUpdate, clients, seconds: 1 }).to_vec();
    }
    let clients = [1, 4, 8, 16];
    Test::UPDATING
        .iter()
        .flat_map(|&test| clients.map(|clients| Bench { test, clients, seconds: 6 }))
        .collect()
}

/// How many steps PostgreSQL takes.
pub fn postgres_steps(scope: Scope) -> usize {
    compare::postgres_steps(&Side::CONTROLLED, pg_shapes(scope).len(), scope.rounds)
}

/// What they take on the disk.
pub fn postgres_space(scope: Scope) -> u64 {
    compare::postgres_space(&Side::CONTROLLED, scale(scope))
}

/// Programs that are missing are named before anything is measured.
pub fn find_postgres() -> Result<()> {
    postgres_bin().map(drop)
}

/// pgbench's scale factor.
fn scale(scope: Scope) -> u32 {
    if scope.quick { 4 } else { 16 }
}

/// pgbench.
pub fn postgres(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let bin = postgres_bin()?;
    let clusters = Clusters::create(lab, &bin, &Side::CONTROLLED, scale(scope))?;
    let results = clusters.measure(&pg_shapes(scope), scope.rounds)?;
    let rows = results.iter().map(|(shape, tps)| pg_row(shape, tps));
    let names = results
        .iter()
        .map(|(shape, tps)| (format!("{}, {}", shape.test.title(), shape.clients_in_words()), *tps));
    let table = table("PostgreSQL, tps", "fsync=off", names.collect(), lab.medium());
    Ok((rows.collect(), table))
}

fn sqlite_shapes(scope: Scope) -> Vec<Shape> {
    let all = [JournalMode::Wal, JournalMode::Delete, JournalMode::Truncate, JournalMode::Persist];
    let journals = if scope.quick { &all[..1] } else { &all[..] };
    let seconds = if scope.quick { 0.5 } else { 2.0 };
    journals.iter().map(|&journal| Shape { journal, seconds }).collect()
}

/// How many steps SQLite takes.
pub fn sqlite_steps(scope: Scope) -> usize {
    compare::sqlite_steps(sqlite_shapes(scope).len(), scope.rounds)
}

/// The SQLite load.
pub fn sqlite(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let shapes = sqlite_shapes(scope);
    let _version =
        compare::create_sqlite(lab, &shapes.iter().map(|shape| shape.journal).collect::<Vec<_>>())?;
    let results = compare::measure_sqlite(lab, &shapes, scope.rounds)?;
    let rows = results.iter().map(|(shape, tps)| sqlite_row(shape, tps));
    let names = results.iter().map(|(shape, tps)| (format!("{} journal", shape.journal.pragma()), *tps));
    let table = table("SQLite, tps", "synchronous=OFF", names.collect(), lab.medium());
    Ok((rows.collect(), table))
}

fn pg_row(shape: &Bench, tps: &Three) -> Fields {
    let row = Fields::default().with("clients", shape.clients).with("test", shape.test.name());
    rates(row, tps, "fsync_off_tps")
}

fn sqlite_row(shape: &Shape, tps: &Three) -> Fields {
    let row = Fields::default().with("journal", shape.journal.pragma()).with("test", "insert-update");
    rates(row, tps, "sync_off_tps")
}

fn rates(row: Fields, tps: &Three, unsafe_name: &str) -> Fields {
    row.with_spread("fs_tps", tps.fs)
        .with_spread("seawall_tps", tps.seawall)
        .with_spread(unsafe_name, tps.unsafe_bound)
        .with_spread("of_unsafe", tps.of_unsafe)
        .with_control(tps)
        .with_spread("speedup", tps.speedup)
}

/// The sides' rates for people.
pub fn table(title: &str, unsafe_name: &str, results: Vec<(String, Three)>, medium: &str) -> String {
    let cell = |s: Spread| s.told(thousands);
    let ratio = |s: Spread| s.told(short);
    let rows: Vec<Vec<String>> = results
        .into_iter()
        .map(|(name, t)| {
            let control = t.control.map_or("–".to_owned(), ratio);
            let gain = format!("{}×", short(t.speedup.median));
            vec![name, cell(t.fs), cell(t.seawall), cell(t.unsafe_bound), gain, ratio(t.of_unsafe), control]
        })
        .collect();
    let header = [title, "bare fs", "seawall", unsafe_name, "speedup", "of unsafe", "control"];
    format!("{}  seawall on: {medium}\n", table::format(&header, &rows))
}

#[cfg(test)]
mod tests {
    use super::super::keys;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        let tps = Three::CONTROLLED;
        let scope = Scope { quick: false, rounds: 1, pool: 0 };
        pg_shapes(scope).iter().for_each(|shape| pg_row(shape, &tps).assert_keys(keys::POSTGRES));
        sqlite_shapes(scope).iter().for_each(|shape| sqlite_row(shape, &tps).assert_keys(keys::SQLITE));
    }
}
