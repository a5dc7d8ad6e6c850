//! `mariadb`: sysbench's updates of an indexed column, transactions a second on every side.
//!
//! The sides' servers begin with the same bytes and run side by side; their loads take turns.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use seawall_load::installed::Tool;

use super::stores::with_rates;
use super::{Fields, Scope, SectionResult, databases};
use crate::compare::{self, Samples, Three};
use crate::installed::{SYSBENCH, Tables};
use crate::lab::Lab;
use crate::mariadb::{Server, program};
use crate::process::run;
use crate::side::Side;
use crate::table::thousands;

/// They fit into the buffer pool.
const TABLES: Tables = Tables { tables: 4, rows: 25_000 };
/// What the servers take on the disk, with redo and binary logs.
pub const SPACE: u64 = 4 << 30;

fn threads(scope: Scope) -> &'static [u32] {
    if scope.quick { &[1, 4] } else { &[1, 4, 16] }
}

/// Seconds that each side is loaded in a round.
fn seconds(scope: Scope) -> f64 {
    if scope.quick { 1.0 } else { 6.0 }
}

/// How many steps the section takes.
pub fn steps(scope: Scope) -> usize {
    1 + compare::steps(threads(scope).len(), scope.rounds)
}

/// Programs that are missing are named before anything is measured.
pub fn find_programs() -> Result<()> {
    program()?;
    Tool::Sysbench.find().map(drop)
}

/// The section.
pub fn measure(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let shapes = threads(scope);
    let title = |threads: &u32| format!("{threads} threads");
    let copies = create(lab)?;
    let mut samples: Vec<Samples> = shapes.iter().map(|_| Samples::default()).collect();
    for round in 0..scope.rounds {
        let servers = start(lab, &copies, round)?;
        for (threads, samples) in shapes.iter().zip(&mut samples) {
            let what = format!("round {}: MariaDB, {}", round + 1, title(threads));
            lab.progress.doing(&what);
            lab.settle()?;
            let load = (*threads, seconds(scope));
            for (side, work) in TABLES.update_in_turns(lab, &servers, load, round).context(what.clone())? {
                lab.progress.done(&format!("{what}, {}: {} tps", side.title(), thousands(work.rate)));
                samples.add(side, work.rate);
            }
        }
        servers.into_values().try_for_each(Server::stop)?;
    }
    let results: Vec<Three> = samples.iter().map(Samples::three).collect::<Result<_>>()?;
    let rows = shapes.iter().zip(&results).map(|(threads, rates)| row(*threads, rates));
    let names = shapes.iter().map(title).zip(results.iter().copied()).collect();
    Ok((rows.collect(), databases::table("MariaDB, tps", "no sync at commit", names, lab.medium())))
}

/// Equal data directories, one a side, which change hands from round to round.
fn create(lab: &Lab) -> Result<Vec<PathBuf>> {
    lab.progress.doing("MariaDB: sysbench prepare");
    let template = lab.work.data("mariadb-template");
    TABLES.prepare(lab, &template)?;
    let copy = |side: Side| {
        let data = lab.work.data(&format!("mariadb-{}", side.name()));
        let mut copy = lab.command("/bin/cp");
        copy.args(["-a", "--reflink=never"]).arg(&template).arg(&data);
        run(copy, "copy the data directory")?;
        Ok(data)
    };
    let copies = Side::CONTROLLED.into_iter().map(copy).collect::<Result<_>>()?;
    std::fs::remove_dir_all(&template)?;
    lab.progress.done("MariaDB: equal data directories");
    Ok(copies)
}

fn start<'a>(lab: &'a Lab, copies: &[PathBuf], round: usize) -> Result<BTreeMap<Side, Server<'a>>> {
    let data = |nth: usize| &copies[(nth + round) % copies.len()];
    let start = |(nth, side)| Ok((side, Server::start(lab, side, data(nth))?));
    Side::CONTROLLED.into_iter().enumerate().map(start).collect()
}

fn row(threads: u32, rates: &Three) -> Fields {
    with_rates(Fields::default().with("test", SYSBENCH).with("threads", threads), rates)
}

#[cfg(test)]
mod tests {
    use super::super::keys;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        row(1, &Three::CONTROLLED).assert_keys(keys::MARIADB);
    }
}
