//! PostgreSQL under Seawall, killed at full load: no acknowledged commit is missing, and it is sound.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::common::{Place, assert_complete};
use seawall_lab::crash::{PostgresLoad, check_postgres};
use seawall_lab::pg::{Cluster, TAIL, Variant, try_bare_start};
use seawall_lab::process::run;
use seawall_lab::side::{Preset, Side};

/// Reads one page after the other in no order: of a scan the kernel's readahead would bring them.
const HERE_AND_THERE: &str = "SELECT count(a.abalance) FROM generate_series(1, 5000) g, LATERAL \
     (SELECT abalance FROM pgbench_accounts WHERE aid = 1 + g * 7919 % 100000 OFFSET 0) a";
/// Commits before and after something is killed.
const SOME: usize = 300;

struct Scene {
    place: Place,
    bin: PathBuf,
    data: PathBuf,
}

impl Scene {
    fn new() -> Self {
        Self::at(Place::new())
    }

    fn at(place: Place) -> Self {
        let (bin, data) = place.postgres();
        Self { place, bin, data }
    }

    fn start(&self, side: Side) -> Cluster<'_> {
        Cluster::start(&self.place.lab, &self.bin, side, &self.data).expect("PostgreSQL starts")
    }

    /// A server at full load that has been through a checkpoint and has switched WAL files.
    fn under_load(&self) -> (Cluster<'_>, PostgresLoad) {
        let cluster = self.start(Side::Seawall);
        let load = PostgresLoad::start(&self.place.lab, &cluster, &self.place.ledger()).expect("starts");
        load.wait_for_commits(SOME).expect("commits");
        cluster.sql("SELECT pg_switch_wal()").expect("switched");
        cluster.sql("CHECKPOINT").expect("a checkpoint");
        load.wait_for_commits(SOME).expect("commits");
        (cluster, load)
    }

    /// The ledger, amcheck, and, after an orderly end, the checksum of every page.
    fn check(&self, cluster: Cluster<'_>) {
        let verdict = check_postgres(&self.place.lab, &cluster, &self.place.ledger()).expect("a verdict");
        assert_complete(&verdict);
        self.check_structure(cluster);
    }

    fn check_structure(&self, cluster: Cluster<'_>) {
        let mut amcheck = cluster.client("pg_amcheck");
        amcheck.args(["--install-missing", "--heapallindexed"]);
        run(amcheck, "pg_amcheck").expect("clean");
        cluster.stop().expect("an orderly end");
        self.page_checksums().expect("every page's checksum is right");
    }

    /// One of the counters of files below `dir`, all together.
    fn in_log(&self, dir: &Path, counter: &str) -> u64 {
        let said: serde_json::Value = self.place.lab.pool.status().expect("status");
        let files = said["files"].as_array().expect("files").iter();
        let below =
            files.filter(|file| Path::new(file["path"].as_str().unwrap_or_default()).starts_with(dir));
        below.map(|file| file[counter].as_u64().expect("a counter")).sum()
    }

    /// How often an event was waited for.
    fn waits(&self, event: &str) -> u64 {
        let said: serde_json::Value = self.place.lab.pool.status().expect("status");
        let events = said["events"].as_array().expect("events");
        let found = events.iter().find(|found| found["name"] == event);
        found.and_then(|found| found["count"].as_u64()).unwrap_or(0)
    }

    /// Takes the data files out of the page cache.
    fn forget_pages(&self) {
        let base = std::fs::read_dir(self.data.join("base")).expect("databases").flatten();
        let files = base.flat_map(|dir| std::fs::read_dir(dir.path()).expect("a database").flatten());
        for file in files.filter_map(|file| std::fs::File::open(file.path()).ok()) {
            file.sync_data().expect("synced");
            // SAFETY: a plain call on a descriptor of our own.
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        }
    }

    fn page_checksums(&self) -> anyhow::Result<()> {
        let mut checksums = self.place.lab.command(self.bin.join("pg_checksums"));
        checksums.arg("--check").arg("-D").arg(&self.data);
        run(checksums, "pg_checksums").map(drop)
    }
}

// Holds: K1
#[test]
fn the_whole_database_killed() {
    whole_database_killed(&Scene::new());
}

#[test]
fn on_a_block_device_the_whole_database_killed() {
    whole_database_killed(&Scene::at(Place::on_block()));
}

fn whole_database_killed(scene: &Scene) {
    let (cluster, load) = scene.under_load();
    cluster.kill().expect("killed");
    load.end().expect("lost its connections");
    scene.check(scene.start(Side::Seawall));
}

#[test]
fn with_a_block_cache_the_daemon_killed_then_the_database() {
    daemon_killed(&Scene::at(Place::cached()));
}

/// What it reads after that comes from the block cache: filled after the first kill, and warm after the second.
#[test]
fn with_a_block_cache_killed_twice_and_read_from_there() {
    let scene = Scene::at(Place::cached());
    let (cluster, load) = scene.under_load();
    cluster.kill().expect("killed");
    load.end().expect("lost its connections");
    let read = || {
        scene.forget_pages();
        let cluster = scene.start(Side::Seawall);
        cluster.sql(HERE_AND_THERE).expect("read");
        let verdict = check_postgres(&scene.place.lab, &cluster, &scene.place.ledger()).expect("a verdict");
        assert_complete(&verdict);
        let hits = scene.waits("db flash cache single block physical read");
        (cluster, hits)
    };
    read().0.kill().expect("killed");
    let (cluster, hits) = read();
    // How many depends on what the page cache had at the first reading, which offers only what came from the disk.
    assert!(hits > 0, "nothing came from the block cache");
    println!("{hits} hits");
    scene.check_structure(cluster);
}

// Holds: K1
#[test]
fn one_backend_killed() {
    let scene = Scene::new();
    let (cluster, load) = scene.under_load();
    cluster.kill_one_backend().expect("killed");
    load.end().expect("lost its connections");
    cluster.wait_answering().expect("PostgreSQL recovers by itself");
    scene.check(cluster);
}

// Holds: K2
#[test]
fn the_daemon_killed_then_the_database() {
    daemon_killed(&Scene::new());
}

#[test]
fn on_a_block_device_the_daemon_killed_then_the_database() {
    daemon_killed(&Scene::at(Place::on_block()));
}

fn daemon_killed(scene: &Scene) {
    let (cluster, load) = scene.under_load();
    scene.place.replace_daemon(|| load.wait_for_commits(SOME));
    cluster.kill().expect("killed");
    load.end().expect("lost its connections");
    scene.check(scene.start(Side::Seawall));
}

// Holds: K4
#[test]
fn seawall_run_killed_then_the_database() {
    let scene = Scene::new();
    let (cluster, load) = scene.under_load();
    let daemon = scene.place.daemon();
    cluster.kill_launcher().expect("killed");
    load.wait_for_commits(SOME).expect("the database goes on");
    assert_eq!(scene.place.daemon(), daemon, "the daemon goes on");
    cluster.kill().expect("killed");
    load.end().expect("lost its connections");
    scene.check(scene.start(Side::Seawall));
}

// Holds: K6
#[test]
fn everything_killed_at_once_then_replayed() {
    everything_killed(&Scene::new(), || ());
}

#[test]
fn on_a_block_device_everything_killed_at_once_then_replayed_from_the_device_alone() {
    let scene = Scene::at(Place::on_block());
    everything_killed(&scene, || scene.place.lose_memory());
}

fn everything_killed(scene: &Scene, lose: impl FnOnce()) {
    let (cluster, load) = scene.under_load();
    cluster.kill_with(&[scene.place.daemon()]).expect("killed");
    load.end().expect("lost its connections");
    lose();
    let bare = || try_bare_start(&scene.place.lab, &scene.bin, &scene.data).expect("tried");
    let refused = bare().expect("a bare start is refused");
    assert!(refused.contains("invalid data in file \"backup_label\""), "{refused}");
    scene.place.recover_with_replay();
    // From here on without Seawall: the files alone hold everything.
    scene.check(scene.start(Side::Fs));
}

#[test]
fn a_tablespace_made_while_the_server_runs_killed_then_replayed() {
    let scene = Scene::new();
    let atomic =
        Variant { on_seawall: &[("full_page_writes", "off")], preset: Preset::PostgresAtomic, ..TAIL };
    let cluster =
        Cluster::start_as(&scene.place.lab, &scene.bin, Side::Seawall, &scene.data, &atomic).expect("starts");
    let space = scene.data.with_file_name("space");
    // As the database's user, to whom it has to belong.
    cluster.sql(&format!("COPY (SELECT 1) TO PROGRAM 'mkdir -m 700 {}'", space.display())).expect("made");
    cluster.sql(&format!("CREATE TABLESPACE space LOCATION '{}'", space.display())).expect("a tablespace");
    cluster
        .sql("CREATE TABLE t (i int PRIMARY KEY USING INDEX TABLESPACE space) TABLESPACE space")
        .expect("made");
    cluster.sql("INSERT INTO t SELECT generate_series(1, 50000)").expect("written");
    cluster.sql("CHECKPOINT").expect("its pages are written");
    assert_eq!(scene.in_log(&space, "untracked_writes"), 0, "all of it is in the log");
    assert!(scene.in_log(&space, "writes") > 100);
    cluster.sql("UPDATE t SET i = -i WHERE i % 2 = 0").expect("acknowledged");
    cluster.kill_with(&[scene.place.daemon()]).expect("killed");
    scene.place.recover_with_replay();
    let cluster = scene.start(Side::Fs);
    let sum = cluster.query("SELECT count(*) || ' ' || sum(i) FROM t").expect("readable");
    assert_eq!(sum, "50000 -25000");
    scene.check_structure(cluster);
}

#[test]
fn what_is_missing_or_damaged_is_found() {
    let scene = Scene::new();
    let (cluster, load) = scene.under_load();
    cluster.kill().expect("killed");
    load.end().expect("lost its connections");
    let cluster = scene.start(Side::Seawall);
    let check = || check_postgres(&scene.place.lab, &cluster, &scene.place.ledger()).expect("a verdict");
    assert_complete(&check());
    cluster.sql("DELETE FROM seawall_ledger WHERE client = 1 AND seq = 5").expect("a planted loss");
    assert_eq!(check().missing, 1);
    scene.place.claim_one_more();
    assert_eq!(check().missing, 2);
    cluster
        .sql("UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = 1")
        .expect("half a transfer");
    assert_eq!(check().integrity_errors.len(), 1);
    cluster.stop().expect("an orderly end");
    garble(&scene.data);
    scene.page_checksums().expect_err("a garbled page");
}

/// Overwrites a few bytes of the largest table.
fn garble(data: &Path) {
    let files = std::fs::read_dir(data.join("base")).expect("databases").flatten();
    let files = files.flat_map(|dir| std::fs::read_dir(dir.path()).expect("a database").flatten());
    let largest = files.max_by_key(|file| file.metadata().map_or(0, |m| m.len())).expect("a table").path();
    let file = std::fs::OpenOptions::new().write(true).open(largest).expect("opened");
    std::os::unix::fs::FileExt::write_all_at(&file, b"garbage", 8192 + 4000).expect("garbled");
}
