//! PostgreSQL: amcheck and the checksum of every page.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use seawall_lab::crash::{PostgresLoad, check_postgres};
use seawall_lab::lab::Lab;
use seawall_lab::pg::{Cluster, Template};
use seawall_lab::process::run;
use seawall_lab::side::{Preset, Side};
use seawall_lab::tools::postgres_bin;
use seawall_load::ledger::Verdict;

use super::Database;

struct Postgres {
    bin: PathBuf,
}

impl Database for Postgres {
    const PRESET: Preset = Preset::Postgres;
    const SOME: usize = 300;
    const REFUSED: &str = "invalid data in file \"backup_label\"";
    type Load<'a> = (Cluster<'a>, PostgresLoad);

    fn install(lab: &Lab) -> Self {
        let bin = postgres_bin().expect("PostgreSQL, which `make deps` installs");
        let template = Template::create(lab, &bin, 1).expect("a cluster");
        template.copy_for(Side::Mount).expect("copied to the mount");
        Self { bin }
    }

    fn name(&self) -> String {
        "pg-mount".to_owned()
    }

    fn start<'a>(&'a self, lab: &'a Lab, data: &'a Path, ledger: &Path) -> Self::Load<'a> {
        let cluster = Cluster::start(lab, &self.bin, Side::Mount, data).expect("PostgreSQL starts");
        let load = PostgresLoad::start(lab, &cluster, ledger).expect("starts");
        load.wait_for_commits(100).expect("commits");
        cluster.sql("SELECT pg_switch_wal()").expect("switched");
        cluster.sql("CHECKPOINT").expect("a checkpoint");
        (cluster, load)
    }

    fn wait((_, load): &Self::Load<'_>, more: usize) {
        load.wait_for_commits(more).expect("commits");
    }

    fn kill((cluster, load): Self::Load<'_>, others: &[u32]) {
        cluster.kill_with(others).expect("killed");
        load.end().expect("lost its connections");
    }

    fn check(&self, lab: &Lab, side: Side, data: &Path, ledger: &Path) -> Result<Verdict> {
        let cluster = Cluster::start(lab, &self.bin, side, data)?;
        let verdict = check_postgres(lab, &cluster, ledger)?;
        let mut amcheck = cluster.client("pg_amcheck");
        amcheck.args(["--install-missing", "--heapallindexed"]);
        run(amcheck, "pg_amcheck")?;
        cluster.stop()?;
        let mut checksums = lab.command(self.bin.join("pg_checksums"));
        checksums.arg("--check").arg("-D").arg(data);
        run(checksums, "pg_checksums").context("every page's checksum")?;
        Ok(verdict)
    }
}

// Holds: K1
#[test]
fn postgres_is_killed() {
    super::the_database_is_killed::<Postgres>();
}

#[test]
fn postgres_is_killed_with_a_block_cache() {
    super::the_database_is_killed_at::<Postgres>(&super::Place::cached());
}

#[test]
fn postgres_outlives_the_daemon_with_a_block_cache() {
    super::the_daemon_is_killed_then_the_database_at::<Postgres>(&super::Place::cached());
}

// Holds: K5
#[test]
fn postgres_loses_its_mount() {
    super::the_mounts_process_is_killed::<Postgres>();
}

// Holds: K2
#[test]
fn postgres_outlives_the_daemon() {
    super::the_daemon_is_killed_then_the_database::<Postgres>();
}

// Holds: K6
#[test]
fn postgres_and_everything_killed_at_once_then_replayed() {
    super::everything_is_killed_at_once_then_replayed::<Postgres>();
}
