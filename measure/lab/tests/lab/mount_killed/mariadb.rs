//! MariaDB: CHECK TABLE, every page's checksum, and the binary logs.

use std::path::Path;

use anyhow::Result;
use seawall_lab::crash::{MariadbLoad, check_mariadb, check_mariadb_files};
use seawall_lab::lab::Lab;
use seawall_lab::mariadb::{Server, install};
use seawall_lab::mount::place;
use seawall_lab::side::{Preset, Side};
use seawall_load::ledger::Verdict;

use super::Database;

struct Mariadb;

impl Database for Mariadb {
    const PRESET: Preset = Preset::Mariadb;
    const SOME: usize = 300;
    const REFUSED: &str = "Failed to create ddl log file: ./ddl_recovery.log";
    type Load<'a> = (Server<'a>, MariadbLoad);

    fn install(lab: &Lab) -> Self {
        install(lab, &place(lab)).expect("MariaDB, which `make deps` installs");
        Self
    }

    fn name(&self) -> String {
        // The mounted directory is MariaDB's own: its preset looks for logs nowhere else.
        String::new()
    }

    fn start<'a>(&'a self, lab: &'a Lab, data: &'a Path, ledger: &Path) -> Self::Load<'a> {
        let server = Server::start(lab, Side::Mount, data).expect("MariaDB starts");
        let load = MariadbLoad::start(lab, &server, ledger).expect("starts");
        load.wait_for_commits(100).expect("commits");
        server.sql("FLUSH BINARY LOGS; SET GLOBAL innodb_max_dirty_pages_pct = 0").expect("flushed");
        (server, load)
    }

    fn wait((_, load): &Self::Load<'_>, more: usize) {
        load.wait_for_commits(more).expect("commits");
    }

    fn kill((server, load): Self::Load<'_>, others: &[u32]) {
        server.kill_with(others).expect("killed");
        load.end().expect("lost its connections");
    }

    fn check(&self, lab: &Lab, side: Side, data: &Path, ledger: &Path) -> Result<Verdict> {
        let server = Server::start(lab, side, data)?;
        let mut verdict = check_mariadb(lab, &server, ledger)?;
        server.stop()?;
        let files = check_mariadb_files(lab, data, ledger)?;
        verdict.missing = verdict.missing.max(files.missing);
        verdict.integrity_errors.extend(files.integrity_errors);
        Ok(verdict)
    }
}

// Holds: K1
#[test]
fn mariadb_is_killed() {
    super::the_database_is_killed::<Mariadb>();
}

// Holds: K5
#[test]
fn mariadb_loses_its_mount() {
    super::the_mounts_process_is_killed::<Mariadb>();
}

// Holds: K2
#[test]
fn mariadb_outlives_the_daemon() {
    super::the_daemon_is_killed_then_the_database::<Mariadb>();
}

// Holds: K6
#[test]
fn mariadb_and_everything_killed_at_once_then_replayed() {
    super::everything_is_killed_at_once_then_replayed::<Mariadb>();
}
