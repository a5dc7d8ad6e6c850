//! Waits that the database itself timed.

use std::collections::BTreeMap;

use super::figures::{Event, Period};
use crate::delta::Deltas;
use crate::names;

fn event(name: &str, class: &str, waits: Option<f64>, time_ms: Option<f64>, native: &str) -> Option<Event> {
    let time_s = time_ms.filter(|ms| *ms > 0.0)? / 1e3;
    let waits = waits.filter(|n| *n > 0.0);
    Some(Event {
        name: name.into(),
        class: class.into(),
        waits,
        time_s,
        native: native.into(),
        source: "counted".into(),
        seen: 0,
    })
}

/// The log's writes and syncs, and data files' (track_wal_io_timing, track_io_timing). They happen inside
/// sessions' waits as well as in the server's own processes, so they stand apart from the events.
pub fn background(deltas: &Deltas) -> Vec<Event> {
    let wal = |name: &str| deltas.sum("pg_stat_wal", name);
    let both = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
    let mut events = Vec::new();
    events.extend(event(
        "log file parallel write",
        "System I/O",
        wal("wal_sync"),
        both(wal("wal_write_time"), wal("wal_sync_time")),
        "pg_stat_wal.wal_write_time + wal_sync_time",
    ));
    events.extend(event(
        "db file parallel write",
        "System I/O",
        None,
        deltas.sum("pg_stat_database", "blk_write_time"),
        "pg_stat_database.blk_write_time",
    ));
    let checkpoints = |name: &str| deltas.sum("pg_stat_bgwriter", name);
    events.extend(event(
        "checkpoint sync",
        "System I/O",
        None,
        checkpoints("checkpoint_sync_time").or_else(|| deltas.sum("pg_stat_checkpointer", "sync_time")),
        "checkpoint_sync_time",
    ));
    for (item, delta) in deltas.of("pg_stat_io") {
        for (what, count, time) in [
            ("read", "reads", "read_time"),
            ("write", "writes", "write_time"),
            ("sync", "fsyncs", "fsync_time"),
        ] {
            let counter = |name: &str| delta.counters.get(name).copied();
            let name = format!("{item}: {what}");
            events.extend(event(&name, "System I/O", counter(count), counter(time), "pg_stat_io"));
        }
    }
    for (item, delta) in deltas.of("performance_schema") {
        let name = names::mariadb(item);
        let counter = |name: &str| delta.counters.get(name).copied();
        events.extend(event(name.name, name.class, counter("count"), counter("time_ms"), item));
    }
    events
}

/// Without samples: what is known of the clients' time.
pub fn foreground(period: &Period, deltas: &Deltas) -> Vec<Event> {
    let Some(all) = period.db_time_s else { return Vec::new() };
    let database = |name: &str| deltas.sum("pg_stat_database", name);
    let mut events: Vec<Event> = profile(deltas, all);
    let profiled = !events.is_empty();
    if !profiled {
        events.extend(event(
            "db file sequential read",
            "User I/O",
            database("blks_read"),
            database("blk_read_time"),
            "pg_stat_database.blk_read_time",
        ));
    }
    let known: f64 = events.iter().map(|e| e.time_s).sum();
    // The server's own processes are in this as well, but they hardly ever matter.
    let cpu = period.db_cpu_s.unwrap_or(0.0).min((all - known).max(0.0));
    events.extend(event(
        names::CPU.name,
        names::CPU.class,
        None,
        Some(cpu * 1e3),
        "CPU time of all server processes",
    ));
    let rest = all - known - cpu;
    events.extend(event(
        "not known",
        "Other",
        None,
        Some(rest * 1e3),
        "sample activity (seawall snap --every) to see what it was",
    ));
    events
}

/// The profile of `pg_wait_sampling`, which sees waits at every hundredth of a second, but not who has them: what
/// only idle sessions and the server's own processes wait for is left out. No more than `all` seconds.
fn profile(deltas: &Deltas, all: f64) -> Vec<Event> {
    let mut by_name: BTreeMap<&str, Event> = BTreeMap::new();
    for (item, delta) in deltas.of("pg_wait_sampling") {
        let (wait_type, wait_event) = item.split_once('/').unwrap_or((item, ""));
        if matches!(wait_type.to_lowercase().as_str(), "" | "activity" | "client" | "timeout" | "extension") {
            continue;
        }
        let period_ms = delta.gauges.get("period_ms").copied().filter(|ms| *ms > 0.0).unwrap_or(10.0);
        let count = delta.counter("count");
        let name = names::postgres(wait_type, wait_event);
        let native = format!("{wait_type}:{wait_event} (pg_wait_sampling)");
        let Some(found) = event(name.name, name.class, None, Some(count * period_ms), &native) else {
            continue;
        };
        let into = by_name.entry(name.name).or_insert_with(|| Event {
            time_s: 0.0,
            native: String::new(),
            ..found.clone()
        });
        into.time_s += found.time_s;
        into.native = [into.native.as_str(), &native]
            .into_iter()
            .filter(|n| !n.is_empty())
            .collect::<Vec<_>>()
            .join(", ");
        into.source = "sampled".into();
        into.seen += count as u64;
    }
    let sum: f64 = by_name.values().map(|e| e.time_s).sum();
    let too_much = f64::max(sum / all.max(f64::MIN_POSITIVE), 1.0);
    by_name.into_values().map(|e| Event { time_s: e.time_s / too_much, ..e }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Reading, Snapshot};

    /// Rows as the extension's documentation has them: it was not at hand.
    #[test]
    fn a_profile_of_waits_stands_in_for_samples() {
        let snapshot = |id: i64, n: f64| {
            let row = |item: &str, count: f64| {
                Reading::new("pg_wait_sampling", item, "e")
                    .counter("count", count * n)
                    .gauge("period_ms", 10.0)
            };
            let rows =
                vec![row("IO/WALSync", 200.0), row("LWLock/WALWrite", 100.0), row("Client/ClientRead", 9e6)];
            let mut snapshot = Snapshot { id, ..Snapshot::default() };
            snapshot.add("pg_wait_sampling", true, rows);
            snapshot
        };
        let deltas = Deltas::over(&[snapshot(1, 1.0), snapshot(2, 2.0)]);
        let period = Period { db_time_s: Some(10.0), db_cpu_s: Some(4.0), ..Period::default() };
        let events = foreground(&period, &deltas);
        let of = |name: &str| events.iter().find(|e| e.name == name).map(|e| e.time_s);
        assert_eq!((of("log file sync"), of("DB CPU"), of("not known")), (Some(3.0), Some(4.0), Some(3.0)));
        assert_eq!(profile(&deltas, 1.5).iter().map(|e| e.time_s).sum::<f64>(), 1.5);
    }
}
