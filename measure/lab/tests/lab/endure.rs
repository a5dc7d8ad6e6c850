//! A short slice of the long run: the log wraps, nothing leaks, the figures are there.

use crate::common::Place;
use clap::ValueEnum;
use seawall_lab::endure::{Endured, Load, endure};

/// Descriptors and threads of the daemon that come and go: connections, clients, files being registered.
const TRANSIENT: f64 = 8.0;

fn loads(names: &[&str]) -> Vec<Load> {
    names.iter().map(|name| Load::from_str(name, false).expect("a load")).collect()
}

fn assert_level(endured: &Endured, figure: &str) {
    let growth = endured.growth[figure];
    assert!(growth.first.median > 0.0, "{}: no {figure}", endured.load);
    assert!(
        growth.last.median <= growth.first.max + TRANSIENT,
        "{}: {figure} grows: {growth:?}",
        endured.load
    );
}

#[test]
fn many_pools_worth_of_writes_leave_nothing_behind() {
    let place = Place::new();
    let loads = loads(&["write-tail-sequential-flat-out", "write-atomic-random-steady", "postgres-atomic"]);
    let results = endure(&place.lab, &loads, 0.35).expect("endured");
    for endured in &results.loads {
        assert!(endured.samples >= 4, "{endured:#?}");
        let flat_out = endured.load.ends_with("flat-out");
        assert!(!flat_out || endured.pools > 1.0, "the log did not wrap: {endured:#?}");
        assert_level(endured, "fds_beside_files");
        assert_level(endured, "daemon_threads");
        let pool = place.lab.pool.size() as f64;
        assert!(endured.growth["backlog_bytes"].highest <= pool, "{endured:#?}");
        assert!(endured.growth["files"].highest <= f64::from(endured.files_max), "{endured:#?}");
        assert!(endured.latencies.values().all(|l| l.count > 0 && l.longest_us >= l.p999_us), "{endured:#?}");
        if endured.policy == "atomic" {
            assert_eq!(endured.around, 0, "writes went around the log: {endured:#?}");
        }
    }
}
