//! The database: its transactions, its log, its statements and tables.

use std::collections::BTreeMap;

use seawall_awr::model::{Reading, Snapshot};

use super::with;

/// What it has counted after so many minutes, so many times as fast as on a disk.
pub fn add(snapshot: &mut Snapshot, m: f64, fast: f64) {
    add_transactions(snapshot, m, fast);
    add_checkpoints(snapshot, m, fast);
    add_log(snapshot, m, fast);
    add_statements(snapshot, m, fast);
    add_tables(snapshot, m * fast);
    snapshot.add("server", true, vec![Reading::new("server", "", "s").counter("cpu_s", 190.0 * m)]);
    add_settings(snapshot);
}

fn add_transactions(snapshot: &mut Snapshot, m: f64, fast: f64) {
    let n = m * fast;
    let counters = [
        ("xact_commit", 96_000.0 * n + 2000.0 * (m / 3.0).sin().abs()),
        ("xact_rollback", 12.0 * n),
        ("blks_hit", 4.1e6 * n),
        ("blks_read", 38_000.0 * n),
        ("blk_read_time", 21_000.0 * n),
        ("blk_write_time", 900.0 * n),
        ("active_time", if fast > 1.0 { 270_000.0 } else { 560_000.0 } * m),
        ("session_time", 960_000.0 * m),
        ("tup_fetched", 410_000.0 * n),
        ("tup_updated", 288_000.0 * n),
        ("tup_inserted", 96_000.0 * n),
        ("tup_deleted", 0.0),
        ("sessions", 3.0 * m),
        ("temp_bytes", 0.0),
        ("deadlocks", 0.0),
    ];
    let readings = vec![with(Reading::new("pg_stat_database", "app", "s"), &counters)];
    snapshot.add("pg_stat_database", true, readings);
}

fn add_checkpoints(snapshot: &mut Snapshot, m: f64, fast: f64) {
    let n = m * fast;
    let checkpoints = [
        ("checkpoints_timed", (m / 10.0).floor()),
        ("checkpoints_req", (m / 20.0).floor()),
        ("buffers_checkpoint", 7000.0 * n),
        ("buffers_clean", 900.0 * n),
        ("buffers_backend", 2100.0 * n),
        ("checkpoint_sync_time", 800.0 * m),
    ];
    snapshot.add(
        "pg_stat_bgwriter",
        true,
        vec![with(Reading::new("pg_stat_bgwriter", "", "s"), &checkpoints)],
    );
}

fn add_log(snapshot: &mut Snapshot, m: f64, fast: f64) {
    let n = m * fast;
    let wal = [
        ("wal_records", 900_000.0 * n),
        ("wal_fpi", 9000.0 * n),
        ("wal_bytes", 1.3e8 * n),
        ("wal_write", 31_000.0 * n),
        ("wal_sync", 29_000.0 * n),
        ("wal_write_time", 2400.0 * n),
        ("wal_sync_time", if fast > 1.0 { 15.0 } else { 41_000.0 } * n),
    ];
    snapshot.add("pg_stat_wal", true, vec![with(Reading::new("pg_stat_wal", "", "s"), &wal)]);
}

fn add_statements(snapshot: &mut Snapshot, m: f64, fast: f64) {
    let n = m * fast;
    let statement = |id: &str, text: &str, share: f64| {
        let counters = [
            ("calls", 96_000.0 * n * share),
            ("total_exec_time", 300_000.0 * m * share),
            ("rows", 96_000.0 * n * share),
            ("shared_blks_read", 9000.0 * n * share),
            ("wal_bytes", 4e7 * n * share),
        ];
        with(Reading::new("pg_stat_statements", id, "s"), &counters).fact("query", text)
    };
    let update = "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2";
    let statements = vec![
        statement("7.1.1", update, 1.0),
        statement("8.1.1", "UPDATE pgbench_branches SET bbalance = bbalance + $1 WHERE bid = $2", 0.6),
        statement("9.1.1", "SELECT abalance FROM pgbench_accounts WHERE aid = $1", 0.1),
    ];
    snapshot.add("pg_stat_statements", true, statements);
}

fn add_tables(snapshot: &mut Snapshot, n: f64) {
    let tables = |kind: &str, counters: &[(&str, f64)]| {
        vec![with(Reading::new(kind, "public.pgbench_accounts", "s"), counters)]
    };
    let io = [
        ("heap_blks_read", 31_000.0 * n),
        ("heap_blks_hit", 2e6 * n),
        ("idx_blks_read", 4000.0 * n),
        ("idx_blks_hit", 2e6 * n),
    ];
    snapshot.add("pg_statio_tables", true, tables("pg_statio_tables", &io));
    let rows =
        [("n_tup_upd", 96_000.0 * n), ("n_tup_hot_upd", 90_000.0 * n), ("n_tup_ins", 0.0), ("seq_scan", 1.0)];
    snapshot.add("pg_stat_tables", true, tables("pg_stat_tables", &rows));
}

fn add_settings(snapshot: &mut Snapshot) {
    let settings = BTreeMap::from(
        [
            ("shared_buffers", "1048576 8kB"),
            ("wal_buffers", "2048 8kB"),
            ("max_wal_size", "2048 MB"),
            ("checkpoint_timeout", "600 s"),
            ("checkpoint_completion_target", "0.9"),
            ("fsync", "on"),
            ("synchronous_commit", "on"),
            ("full_page_writes", "on"),
            ("track_io_timing", "on"),
            ("block_size", "8192"),
        ]
        .map(|(n, v)| (n.to_owned(), v.to_owned())),
    );
    let reading = Reading { facts: settings, ..Reading::new("settings", "", "") };
    snapshot.add("settings", true, vec![reading]);
}
