//! An hour of a PostgreSQL under load, made up: 61 snapshots a minute apart, a sample every second. Checkpoints
//! every ten minutes, sessions that wait for each other's rows from the fortieth minute on.

mod database;
mod log;
mod machine;

use seawall_awr::Samples;
use seawall_awr::model::{Cost, Instant, Reading, Sample, Snapshot, Target};

pub const START_MS: i64 = 1_795_269_600_000;
const MINUTES: i64 = 60;

/// Which of two hours: on a disk, or on Seawall.
#[derive(Clone, Copy, PartialEq)]
pub enum Hour {
    Disk,
    Seawall,
}

/// Its snapshots.
pub fn snapshots(hour: Hour) -> Vec<Snapshot> {
    (0..=MINUTES).map(|minute| snapshot(hour, minute)).collect()
}

/// Its samples.
pub fn samples(hour: Hour) -> Samples {
    let mut all = Samples::default();
    for second in 0..MINUTES * 60 {
        let at_ms = START_MS + second * 1000 + 17;
        all.ticks.push(at_ms);
        let (checkpoint, locked) = (second % 600 < 60, second > 2400);
        let wave = 4 + (second / 37 % 5) as u32;
        let mut seen = |wait_type: &str, wait_event: &str, sessions: u32| {
            let foreground = !matches!(wait_event, "DataFileWrite" | "DataFileSync");
            let (wait_type, wait_event) = (wait_type.into(), wait_event.into());
            if sessions > 0 {
                all.samples.push(Sample { at_ms, foreground, wait_type, wait_event, query_id: 7, sessions });
            }
        };
        let commit = if hour == Hour::Disk { wave } else { u32::from(second % 9 == 0) };
        seen("", "", 2 + u32::from(hour == Hour::Seawall) * 2 + (second % 3) as u32);
        seen("IO", "WALSync", commit / 4);
        seen("LWLock", "WALWrite", commit - commit / 4);
        seen("IO", "DataFileRead", u32::from(second % 4 == 0) + 2 * u32::from(checkpoint));
        seen("Lock", "transactionid", if locked { 3 } else { u32::from(second % 50 == 0) });
        seen("LWLock", "BufferContent", u32::from(second % 31 == 0));
        seen("IO", "DataFileWrite", u32::from(checkpoint));
        seen("IO", "DataFileSync", u32::from(second % 600 == 59));
    }
    all
}

fn snapshot(hour: Hour, minute: i64) -> Snapshot {
    let at = Instant {
        wall_ms: START_MS + minute * 60_000,
        up_s: 86_400.0 + minute as f64 * 60.0,
        boot_id: "boot".into(),
    };
    let target = Target {
        product: "PostgreSQL".into(),
        version: "15.14 (Debian 15.14-0+deb12u1)".into(),
        id: "postgresql 7123456789012345678".into(),
        name: "main:5432".into(),
        host: "db1".into(),
    };
    let cost = Cost { cpu_us: 41_000, span_us: 22_000 };
    let mut snapshot = Snapshot { id: minute + 1, at, target, cost, ..Snapshot::default() };
    machine::add(&mut snapshot, minute as f64);
    let fast = if hour == Hour::Seawall { 2.6 } else { 1.0 };
    database::add(&mut snapshot, minute as f64, fast);
    if hour == Hour::Seawall {
        log::add(&mut snapshot, minute as f64);
    }
    snapshot
}

/// The same reading with these counters.
fn with(reading: Reading, counters: &[(&str, f64)]) -> Reading {
    counters.iter().fold(reading, |r, (name, value)| r.counter(name, *value))
}
