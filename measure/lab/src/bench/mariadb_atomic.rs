//! `mariadb_atomic`: no page can be torn, so InnoDB need not write each page twice.
//!
//! Data are larger than the buffer pool, so pages are written all the time. Servers run one after another: the
//! pages of an idle one would be written in another one's run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::stores::with_rates;
use super::{Fields, Scope, SectionResult, databases};
use crate::compare::{Samples, Three};
use crate::installed::{SYSBENCH, Tables};
use crate::lab::Lab;
use crate::mariadb::{Server, Variant};
use crate::process::run as finish;
use crate::side::{Preset, Side, order};
use crate::table::{short, thousands};

const VARIANT: Variant = Variant {
    settings: &["--innodb-buffer-pool-size=64M", "--innodb-doublewrite=ON"],
    on_seawall: &["--innodb-doublewrite=OFF"],
    preset: Preset::MariadbAtomic,
};
/// Some 140 MB of data.
const TABLES: Tables = Tables { tables: 4, rows: 150_000 };
const THREADS: u32 = 8;
/// What three data directories take on the disk, with their logs.
pub const SPACE: u64 = 4 << 30;

/// How many steps the section takes.
pub fn steps(scope: Scope) -> usize {
    1 + scope.rounds * Side::DATABASES.len()
}

fn seconds(scope: Scope) -> u64 {
    if scope.quick { 2 } else { 30 }
}

/// What one run did.
struct Run {
    tps: f64,
    transactions: f64,
    disk_mb: f64,
    innodb_mb: f64,
}

/// The section.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let data = create(lab)?;
    let (mut tps, mut written) = (Samples::default(), Samples::default());
    let (mut written_of_one, mut disk_of_one) = (Samples::default(), Samples::default());
    for round in 0..scope.rounds {
        for side in order(&Side::DATABASES, round) {
            let what = format!("round {}: MariaDB, pages twice, {}", round + 1, side.title());
            lab.progress.doing(&what);
            let run = measure(lab, side, &data[&side], seconds(scope)).with_context(|| what.clone())?;
            let (rate, mb) = (thousands(run.tps), short(run.innodb_mb));
            lab.progress.done(&format!("{what}: {rate} tps, InnoDB wrote {mb} MB"));
            tps.add(side, run.tps);
            written.add(side, run.innodb_mb);
            written_of_one.add(side, run.innodb_mb / run.transactions);
            disk_of_one.add(side, run.disk_mb / run.transactions);
        }
    }
    let (tps, written) = (tps.three()?, written.three()?);
    let shares = [written_of_one.three()?, disk_of_one.three()?];
    let names = vec![(format!("{THREADS} threads"), tps)];
    let mut table = databases::table("MariaDB atomic, tps", "no sync at commit", names, lab.medium());
    table += &format!(
        "  written for a transaction, of the unsafe side's: {} by InnoDB's count, {} by the disk's\n",
        short(shares[0].of_unsafe.median),
        short(shares[1].of_unsafe.median)
    );
    Ok((vec![row(&tps, &written, &shares)], table))
}

/// Three equal data directories.
fn create(lab: &Lab) -> Result<BTreeMap<Side, PathBuf>> {
    lab.progress.doing("MariaDB atomic: sysbench prepare");
    let template = lab.work.data("mariadb-atomic-template");
    TABLES.prepare(lab, &template)?;
    let mut all = BTreeMap::new();
    for side in Side::DATABASES {
        let data = lab.work.data(&format!("mariadb-atomic-{}", side.name()));
        let mut copy = lab.command("/bin/cp");
        copy.args(["-a", "--reflink=never"]).arg(&template).arg(&data);
        finish(copy, "copy the data directory")?;
        all.insert(side, data);
    }
    std::fs::remove_dir_all(template)?;
    lab.progress.done("MariaDB atomic: three equal data directories");
    Ok(all)
}

fn measure(lab: &Lab, side: Side, data: &Path, seconds: u64) -> Result<Run> {
    let server = Server::start_as(lab, side, data, &VARIANT)?;
    lab.settle()?;
    let before = server.written()?;
    let tps = TABLES.update(lab, &server, THREADS, seconds)?.per_second;
    let after = server.written()?;
    server.stop()?;
    lab.settle()?;
    Ok(Run {
        tps,
        transactions: tps * seconds as f64,
        disk_mb: (after.0 - before.0) / 1e6,
        innodb_mb: (after.1 - before.1) / 1e6,
    })
}

fn row(tps: &Three, written: &Three, [written_of_one, disk_of_one]: &[Three; 2]) -> Fields {
    with_rates(Fields::default().with("test", SYSBENCH).with("threads", THREADS), tps)
        .with_spread("seawall_written_mb", written.seawall)
        .with_spread("unsafe_written_mb", written.unsafe_bound)
        .with_spread("written_share", written_of_one.of_unsafe)
        .with_spread("disk_share", disk_of_one.of_unsafe)
}

#[cfg(test)]
mod tests {
    use super::super::keys;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        let shares = [Three::ONE, Three::ONE];
        row(&Three::ONE, &Three::ONE, &shares).assert_keys(keys::MARIADB_ATOMIC);
    }
}
