//! The database's own I/O: by who did it and on what, and by file.
//!
//! One set of counters whatever the source: `reads`, `read_bytes`, `read_ms`, the same of writes, `syncs`,
//! `sync_ms`. A counter that a source lacks is absent.

use std::collections::BTreeMap;

use super::figures::{File, Period};
use crate::delta::{Delta, Deltas};
use crate::names;

const FILES: usize = 30;

/// Fills in both.
pub fn fill(period: &mut Period, deltas: &Deltas) {
    let block = period.settings_number("block_size").unwrap_or(8192.0);
    period.io = deltas.of("pg_stat_io").map(|(item, delta)| pg_stat_io(item, delta)).collect();
    if period.io.is_empty() {
        period.io = before_16(deltas, block);
    }
    period.io.extend(innodb(deltas));
    period.io.extend(by_type(deltas));
    period.io.sort_by(|a, b| bytes(b).total_cmp(&bytes(a)));
    let file = |(name, delta): (&str, &Delta)| File { name: name.into(), counters: delta.counters.clone() };
    period.io_files = deltas.of("performance_schema file").map(file).filter(|f| calls(f) > 0.0).collect();
    period.io_files.sort_by(|a, b| bytes(b).total_cmp(&bytes(a)));
    period.io_files.truncate(FILES);
}

fn of(file: &File, names: &[&str]) -> f64 {
    names.iter().filter_map(|name| file.counters.get(*name)).sum()
}

fn bytes(file: &File) -> f64 {
    of(file, &["read_bytes", "write_bytes"])
}

fn calls(file: &File) -> f64 {
    of(file, &["reads", "writes", "syncs", "misc"])
}

/// A row of the view: since 18 it counts bytes itself, before that blocks of `op_bytes`.
fn pg_stat_io(item: &str, delta: &Delta) -> File {
    let counter = |name: &str| delta.counters.get(name).copied();
    let block = delta.gauges.get("op_bytes").copied().unwrap_or(8192.0);
    let both = |a: &str, b: &str| match (counter(a), counter(b)) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
    };
    let writes = both("writes", "extends");
    let counters = [
        ("reads", counter("reads")),
        ("read_bytes", counter("read_bytes").or_else(|| Some(counter("reads")? * block))),
        ("read_ms", counter("read_time")),
        ("writes", writes),
        ("write_bytes", both("write_bytes", "extend_bytes").or_else(|| Some(writes? * block))),
        ("write_ms", both("write_time", "extend_time")),
        ("syncs", counter("fsyncs")),
        ("sync_ms", counter("fsync_time")),
    ];
    named(item.to_owned(), counters)
}

fn named<const N: usize>(name: String, counters: [(&str, Option<f64>); N]) -> File {
    let known = counters.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    File { name, counters: known.collect() }
}

/// The I/O that older versions count: blocks by their writer, and the log.
fn before_16(deltas: &Deltas, block: f64) -> Vec<File> {
    let database = |name: &str| deltas.sum("pg_stat_database", name);
    let bgwriter = |name: &str| deltas.sum("pg_stat_bgwriter", name);
    let wal = |name: &str| deltas.sum("pg_stat_wal", name);
    let writer = |name: &str, blocks: Option<f64>| {
        named(format!("{name} / data file"), [("writes", blocks), ("write_bytes", blocks.map(|n| n * block))])
    };
    let sessions = named(
        "sessions / data file".into(),
        [
            ("reads", database("blks_read")),
            ("read_bytes", database("blks_read").map(|n| n * block)),
            ("read_ms", database("blk_read_time").filter(|ms| *ms > 0.0)),
            ("writes", bgwriter("buffers_backend")),
            ("write_bytes", bgwriter("buffers_backend").map(|n| n * block)),
            ("write_ms", database("blk_write_time").filter(|ms| *ms > 0.0)),
            ("syncs", bgwriter("buffers_backend_fsync")),
        ],
    );
    let log = named(
        "all / log file".into(),
        [
            ("writes", wal("wal_write")),
            ("write_bytes", wal("wal_bytes")),
            ("write_ms", wal("wal_write_time").filter(|ms| *ms > 0.0)),
            ("syncs", wal("wal_sync")),
            ("sync_ms", wal("wal_sync_time").filter(|ms| *ms > 0.0)),
        ],
    );
    let temporary = named(
        "sessions / temporary file".into(),
        [("write_bytes", database("temp_bytes").filter(|bytes| *bytes > 0.0))],
    );
    let all = [
        sessions,
        log,
        writer("checkpointer", bgwriter("buffers_checkpoint")),
        writer("background writer", bgwriter("buffers_clean")),
        temporary,
    ];
    all.into_iter().filter(|file| file.counters.values().any(|n| *n > 0.0)).collect()
}

/// What InnoDB counts of itself, whether or not anybody times it.
fn innodb(deltas: &Deltas) -> Vec<File> {
    let status = |name: &str| deltas.get("mariadb status", "", name);
    let log = ["Innodb_log_writes", "Innodb_os_log_written", "Innodb_os_log_fsyncs"].map(status);
    // InnoDB's totals have the log in them; MariaDB since 10.8 does not say how many of its syncs were the log's.
    let without = |all: Option<f64>, log: Option<f64>| Some((all? - log.unwrap_or(0.0)).max(0.0));
    let syncs = status("Innodb_data_fsyncs");
    let all = [
        named(
            "InnoDB / data file".into(),
            [
                ("reads", status("Innodb_data_reads")),
                ("read_bytes", status("Innodb_data_read")),
                ("writes", without(status("Innodb_data_writes"), log[0])),
                ("write_bytes", without(status("Innodb_data_written"), log[1])),
                ("syncs", log[2].and_then(|log| without(syncs, Some(log)))),
            ],
        ),
        named("InnoDB / log file".into(), [("writes", log[0]), ("write_bytes", log[1]), ("syncs", log[2])]),
        named("InnoDB / data and log files".into(), [("syncs", syncs.filter(|_| log[2].is_none()))]),
    ];
    all.into_iter().filter(|file| file.counters.values().any(|n| *n > 0.0)).collect()
}

/// Files of `performance_schema`, added up by what they are.
fn by_type(deltas: &Deltas) -> Vec<File> {
    let mut types: BTreeMap<String, File> = BTreeMap::new();
    for (_, delta) in deltas.of("performance_schema file") {
        let instrument = delta.facts.get("query").cloned().unwrap_or_default();
        let short = instrument.trim_start_matches("wait/io/file/").to_owned();
        let name = format!("{short} ({})", names::mariadb(&instrument).name);
        let of_type = types.entry(name.clone()).or_insert_with(|| File { name, ..File::default() });
        delta.counters.iter().for_each(|(name, n)| *of_type.counters.entry(name.clone()).or_default() += n);
    }
    types.into_values().filter(|file| calls(file) > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows as the documentation of PostgreSQL 16 and 18 has them ("pg_stat_io"): no such server ran here.
    #[test]
    fn both_forms_of_pg_stat_io_are_understood() {
        let delta = |counters: &[(&str, f64)], gauges: &[(&str, f64)]| Delta {
            counters: counters.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect(),
            gauges: gauges.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect(),
            ..Delta::default()
        };
        let old = [("reads", 10.0), ("read_time", 5.0), ("writes", 2.0), ("extends", 3.0), ("fsyncs", 1.0)];
        let found = pg_stat_io("client backend / relation / normal", &delta(&old, &[("op_bytes", 8192.0)]));
        assert_eq!((found.counters["read_bytes"], found.counters["write_bytes"]), (81_920.0, 40_960.0));
        assert_eq!((found.counters["writes"], found.counters["syncs"]), (5.0, 1.0));
        let new = [
            ("writes", 4.0),
            ("write_bytes", 100_000.0),
            ("write_time", 2.0),
            ("fsyncs", 4.0),
            ("fsync_time", 9.0),
        ];
        let found = pg_stat_io("walwriter / wal / normal", &delta(&new, &[]));
        assert_eq!((found.counters["write_bytes"], found.counters["sync_ms"]), (100_000.0, 9.0));
        assert!(!found.counters.contains_key("reads"), "what is not counted is absent");
    }
}
