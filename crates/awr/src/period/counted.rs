//! Waits that the database itself timed.

use super::{Event, Period};
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
    let mut events: Vec<Event> = Vec::new();
    events.extend(event(
        "db file sequential read",
        "User I/O",
        database("blks_read"),
        database("blk_read_time"),
        "pg_stat_database.blk_read_time",
    ));
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
