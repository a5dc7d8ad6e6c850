//! Metrics of the keepers of a log.

use seawall_daemon::kept::{KeeperStatus, KeptStatus};
use seawall_daemon::status::Status;

use super::exposition::{Exposition, Kind, borders};

/// All of them; where no keepers keep the log, nothing.
pub fn export(out: &mut Exposition, status: &Status) {
    let Some(kept) = &status.kept else { return };
    all(out, kept);
    kept.keepers.iter().for_each(|keeper| one(out, keeper));
}

fn all(out: &mut Exposition, kept: &KeptStatus) {
    let help = "The losses that a log on keepers survives, in words.";
    out.value("seawall_keepers_info", Kind::Gauge, help, &[("survives", &kept.survives)], 1.0);
    let gauges = [
        (
            "seawall_keepers_needed",
            "Keepers that confirm a commit before it is acknowledged.",
            kept.acks as f64,
        ),
        ("seawall_keepers_counting", "Keepers whose confirmation counts now.", kept.counting as f64),
        (
            "seawall_keepers_failed",
            "1 if no commit is acknowledged any more.",
            f64::from(u8::from(kept.over.is_some())),
        ),
        (
            "seawall_keepers_alone",
            "1 if this host goes on without enough keepers, with its own disk.",
            f64::from(u8::from(kept.alone_s.is_some())),
        ),
    ];
    gauges.iter().for_each(|(name, help, n)| out.value(name, Kind::Gauge, help, &[], *n));
    if let Some(until) = kept.certificate_until {
        let help = "The end of this host's certificate for its keepers, in seconds since 1970.";
        out.value("seawall_keepers_certificate_end_seconds", Kind::Gauge, help, &[], until as f64);
    }
    let help = "Time in which fewer keepers counted than must confirm, since the daemon began.";
    out.value("seawall_keepers_short_seconds_total", Kind::Counter, help, &[], kept.short_s);
    let help = "Periods in which fewer keepers counted than must confirm, since the daemon began.";
    out.value("seawall_keepers_short_total", Kind::Counter, help, &[], kept.short_times as f64);
    let help = "Time in which this host went on without enough keepers, since the daemon began.";
    out.value("seawall_keepers_alone_seconds_total", Kind::Counter, help, &[], kept.alone_total_s);
}

fn one(out: &mut Exposition, keeper: &KeeperStatus) {
    let labels = [("keeper", keeper.address.as_str())];
    let counts = f64::from(u8::from(keeper.role == "counts"));
    let gauges = [
        ("seawall_keeper_counts", "1 if this keeper's confirmation counts now.", counts),
        ("seawall_keeper_behind_batches", "Batches of the log that this keeper lacks.", keeper.behind as f64),
        (
            "seawall_keeper_behind_bytes",
            "Bytes of the batches that this keeper lacks, since the daemon began.",
            keeper.behind_bytes as f64,
        ),
    ];
    gauges.iter().for_each(|(name, help, n)| out.value(name, Kind::Gauge, help, &labels, *n));
    let counters = [
        ("seawall_keeper_sent_bytes_total", "Bytes that were sent to this keeper.", keeper.sent_bytes),
        (
            "seawall_keeper_reconnects_total",
            "How often this keeper was connected to again after it had been lost.",
            keeper.reconnects,
        ),
    ];
    counters.iter().for_each(|(name, help, n)| out.value(name, Kind::Counter, help, &labels, *n as f64));
    out.histogram(
        "seawall_keeper_round_trip_seconds",
        "Time from the sending of a batch to its confirmation.",
        labels[0],
        &borders(&keeper.buckets),
        keeper.sum_ns as f64 / 1e9,
        keeper.answers,
    );
}
