//! MariaDB under Seawall, killed at full load: no acknowledged commit is missing in its tables or in its binary
//! log, and every page is sound.

use std::path::PathBuf;

use crate::common::{Place, assert_complete};
use seawall_lab::crash::{MariadbLoad, check_mariadb, check_mariadb_files};
use seawall_lab::mariadb::{Server, install, try_bare_start};
use seawall_lab::side::Side;

/// Commits before and after something is killed.
const SOME: usize = 300;

struct Scene {
    place: Place,
    data: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let place = Place::new();
        let data = place.lab.work.data("mariadb");
        install(&place.lab, &data).expect("MariaDB, which `make deps` installs");
        Self { place, data }
    }

    fn start(&self, side: Side) -> Server<'_> {
        Server::start(&self.place.lab, side, &self.data).expect("MariaDB starts")
    }

    /// A server at full load that has begun another binary log and has written pages back.
    fn under_load(&self) -> (Server<'_>, MariadbLoad) {
        let server = self.start(Side::Seawall);
        let load = MariadbLoad::start(&self.place.lab, &server, &self.place.ledger()).expect("starts");
        load.wait_for_commits(SOME).expect("commits");
        server.sql("FLUSH BINARY LOGS; SET GLOBAL innodb_max_dirty_pages_pct = 0").expect("flushed");
        load.wait_for_commits(SOME).expect("commits");
        (server, load)
    }

    /// The ledger and CHECK TABLE, and after an orderly end the files themselves.
    fn check(&self, server: Server<'_>) {
        assert_complete(&check_mariadb(&self.place.lab, &server, &self.place.ledger()).expect("a verdict"));
        server.stop().expect("an orderly end");
        let files = check_mariadb_files(&self.place.lab, &self.data, &self.place.ledger());
        assert_complete(&files.expect("sound files"));
    }
}

// Holds: K1
#[test]
fn the_server_killed() {
    let scene = Scene::new();
    let (server, load) = scene.under_load();
    server.kill().expect("killed");
    load.end().expect("lost its connections");
    scene.check(scene.start(Side::Seawall));
}

// Holds: K2
#[test]
fn the_daemon_killed_then_the_server() {
    let scene = Scene::new();
    let (server, load) = scene.under_load();
    scene.place.replace_daemon(|| load.wait_for_commits(SOME));
    server.kill().expect("killed");
    load.end().expect("lost its connections");
    scene.check(scene.start(Side::Seawall));
}

// Holds: K6
#[test]
fn everything_killed_at_once_then_replayed() {
    let scene = Scene::new();
    let (server, load) = scene.under_load();
    server.kill_with(&[scene.place.daemon()]).expect("killed");
    load.end().expect("lost its connections");
    let refused = try_bare_start(&scene.place.lab, &scene.data).expect("tried");
    let refused = refused.expect("a bare start is refused");
    assert!(refused.contains("Failed to create ddl log file: ./ddl_recovery.log"), "{refused}");
    scene.place.recover_with_replay();
    // From here on without Seawall: the files alone hold everything.
    scene.check(scene.start(Side::Fs));
}

#[test]
fn what_is_missing_is_found() {
    let scene = Scene::new();
    let (server, load) = scene.under_load();
    server.kill().expect("killed");
    load.end().expect("lost its connections");
    let server = scene.start(Side::Seawall);
    let check = || check_mariadb(&scene.place.lab, &server, &scene.place.ledger()).expect("a verdict");
    assert_complete(&check());
    server.sql("DELETE FROM seawall.ledger WHERE client = 1 AND seq = 5").expect("a planted loss");
    assert_eq!(check().missing, 1);
    scene.place.claim_one_more();
    assert_eq!(check().missing, 2);
    server.sql("UPDATE seawall.accounts SET balance = balance + 1 WHERE id = 1").expect("half a transfer");
    assert_eq!(check().integrity_errors.len(), 1);
    server.stop().expect("an orderly end");
    let files = check_mariadb_files(&scene.place.lab, &scene.data, &scene.place.ledger());
    assert_eq!(files.expect("a verdict").missing, 1, "the binary log has no claimed commit");
}
