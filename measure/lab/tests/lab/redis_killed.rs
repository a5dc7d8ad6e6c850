//! Redis under Seawall, killed at full load: no acknowledged transaction is missing, redis-check-aof is content.

use std::path::PathBuf;

use crate::common::{Place, assert_complete};
use seawall_lab::crash::{ProgramLoad, check_redis};
use seawall_lab::side::Side;
use seawall_load::redis::Connection;

/// Transactions between two events.
const SOME: usize = 300;

struct Scene {
    place: Place,
    data: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let place = Place::new();
        let data = place.lab.work.data("redis");
        place.lab.fresh_dir(&data).expect("a directory");
        Self { place, data }
    }

    /// A server at full load whose log has been rewritten, and its manifest replaced, meanwhile.
    fn under_load(&self) -> ProgramLoad {
        let load = ProgramLoad::redis(&self.place.lab, &self.data, &self.place.ledger()).expect("starts");
        load.wait_for_commits(SOME).expect("commits");
        let socket = self.place.lab.work.sockets().join("redis-seawall");
        Connection::open(&socket).and_then(|mut redis| redis.call(&["BGREWRITEAOF"])).expect("rewritten");
        load.wait_for_commits(SOME).expect("commits");
        while !self.data.join("appendonlydir/appendonly.aof.2.base.rdb").exists() {
            load.wait_for_commits(1).expect("commits");
        }
        load.wait_for_commits(SOME).expect("commits");
        load
    }

    fn check(&self, side: Side) -> seawall_load::ledger::Verdict {
        check_redis(&self.place.lab, side, &self.data, &self.place.ledger()).expect("a verdict")
    }
}

// Holds: K1
#[test]
fn the_server_killed() {
    let scene = Scene::new();
    scene.under_load().kill().expect("killed");
    assert_complete(&scene.check(Side::Seawall));
    scene.place.claim_one_more();
    assert_eq!(scene.check(Side::Seawall).missing, 1, "the check can fail");
}

// Holds: K2
#[test]
fn the_daemon_killed_then_the_server() {
    let scene = Scene::new();
    let load = scene.under_load();
    scene.place.replace_daemon(|| load.wait_for_commits(SOME));
    load.kill().expect("killed");
    assert_complete(&scene.check(Side::Seawall));
}

// Holds: K6
#[test]
fn everything_killed_at_once_then_replayed() {
    let scene = Scene::new();
    scene.under_load().kill_with(&[scene.place.daemon()]).expect("killed");
    let bare = check_redis(&scene.place.lab, Side::Fs, &scene.data, &scene.place.ledger());
    let refused = bare.expect_err("the bare server is refused").to_string();
    assert!(refused.contains("run-seawall-recover"), "{refused}");
    scene.place.recover_with_replay();
    // From here on without Seawall: the files alone hold everything.
    assert_complete(&scene.check(Side::Fs));
}
