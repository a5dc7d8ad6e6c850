//! `mariadb`: sysbench's updates of an indexed column, transactions a second on every side.
//!
//! The sides' servers begin with the same bytes and run side by side, idle but one.

use std::collections::BTreeMap;

use anyhow::Result;
use seawall_load::installed::Tool;

use super::stores::with_rates;
use super::{Fields, Scope, SectionResult, databases};
use crate::compare::{self, Three, Turns};
use crate::installed::{SYSBENCH, Tables};
use crate::lab::Lab;
use crate::mariadb::{Server, program};
use crate::process::run;
use crate::side::Side;

/// They fit into the buffer pool.
const TABLES: Tables = Tables { tables: 4, rows: 25_000 };
/// What the servers take on the disk, with redo and binary logs.
pub const SPACE: u64 = 4 << 30;

fn threads(scope: Scope) -> &'static [u32] {
    if scope.quick { &[1, 4] } else { &[1, 4, 16] }
}

/// A second each.
fn turns(scope: Scope) -> Turns {
    Turns { rounds: scope.rounds, slices: if scope.quick { 1 } else { 6 } }
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
    let servers = start(lab)?;
    let results = compare::rates(lab, "MariaDB", shapes, turns(scope), title, |side, threads| {
        Ok(TABLES.update(lab, &servers[&side], *threads, 1)?.per_second)
    })?;
    for (_, server) in servers {
        server.stop()?;
    }
    let rows = shapes.iter().zip(&results).map(|(threads, rates)| row(*threads, rates));
    let names = shapes.iter().map(title).zip(results.iter().copied()).collect();
    Ok((rows.collect(), databases::table("MariaDB, tps", "no sync at commit", names, lab.medium())))
}

/// The sides' servers, on copies of one data directory.
fn start(lab: &Lab) -> Result<BTreeMap<Side, Server<'_>>> {
    lab.progress.doing("MariaDB: sysbench prepare");
    let template = lab.work.data("mariadb-template");
    TABLES.prepare(lab, &template)?;
    let mut servers = BTreeMap::new();
    for side in Side::CONTROLLED {
        let data = lab.work.data(&format!("mariadb-{}", side.name()));
        let mut copy = lab.command("/bin/cp");
        copy.args(["-a", "--reflink=never"]).arg(&template).arg(&data);
        run(copy, "copy the data directory")?;
        servers.insert(side, Server::start(lab, side, &data)?);
    }
    std::fs::remove_dir_all(template)?;
    lab.progress.done("MariaDB: equal data directories");
    Ok(servers)
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
