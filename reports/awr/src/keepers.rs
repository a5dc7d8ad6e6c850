//! Keepers of a log in snapshots: what the log survives, and of each keeper how long it took, what it got, and what it lacks.

use seawall_daemon::kept::{KeeperStatus, KeptStatus};
use seawall_daemon::status::Status;

use crate::model::{Reading, Snapshot};
use crate::seawall::BUCKET;

/// All of them together.
pub const KEEPERS: &str = "seawall keepers";
/// One, by its address.
pub const KEEPER: &str = "seawall keeper";

/// Adds their readings; none where no keepers keep the log.
pub fn capture(status: &Status, snapshot: &mut Snapshot) {
    let Some(kept) = &status.kept else { return };
    snapshot.add(KEEPERS, true, vec![all(status, kept)]);
    // The counters of each live as long as the writer's turn does, longer than a daemon.
    let epoch = format!("{} {}", kept.log, kept.epoch);
    snapshot.add(KEEPER, true, kept.keepers.iter().map(|keeper| one(keeper, &epoch)).collect());
}

fn all(status: &Status, kept: &KeptStatus) -> Reading {
    let reading = Reading::new(KEEPERS, "", format!("{} {}", status.epoch, status.daemon_pid))
        .counter("short_s", kept.short_s)
        .counter("short_times", kept.short_times as f64)
        .counter("alone_s", kept.alone_total_s)
        .counter("alone_times", kept.alone_times as f64)
        .gauge("acks", kept.acks as f64)
        .gauge("counting", kept.counting as f64)
        .gauge("keepers", kept.keepers.len() as f64)
        .fact("survives", &kept.survives);
    kept.over.iter().fold(reading, |reading, why| reading.fact("over", why))
}

fn one(keeper: &KeeperStatus, epoch: &str) -> Reading {
    let reading = Reading::new(KEEPER, &keeper.address, epoch)
        .counter("count", keeper.answers as f64)
        .counter("sum_ns", keeper.sum_ns as f64)
        .counter("sent_bytes", keeper.sent_bytes as f64)
        .counter("reconnects", keeper.reconnects as f64)
        .gauge("behind", keeper.behind as f64)
        .gauge("behind_bytes", keeper.behind_bytes as f64)
        .gauge("longest_ns", keeper.longest_us * 1e3)
        .fact("role", &keeper.role)
        .fact("witness", if keeper.witness { "yes" } else { "no" })
        .fact("affirms", if keeper.affirms { "yes" } else { "no" })
        .fact("trouble", &keeper.trouble);
    keeper.buckets.iter().fold(reading, |r, (floor, n)| r.counter(&format!("{BUCKET}{floor}"), *n as f64))
}
