//! Figures and names as reports show them.

use seawall_page::scale::{bytes, digits, time};

/// A figure, or a dash.
pub fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), digits)
}

/// A value of the load profile.
pub fn of_unit(value: f64, unit: &str) -> String {
    match unit {
        "bytes" => bytes(value),
        _ => digits(value),
    }
}

/// Percent.
pub fn percent(value: Option<f64>) -> String {
    // An empty sum of floats is -0.
    value.map_or_else(|| "–".into(), |v| format!("{:.1}", v + 0.0))
}

/// A mean wait from seconds and a count.
pub fn mean(time_s: f64, waits: Option<f64>) -> String {
    waits.filter(|n| *n > 0.0).map_or_else(|| "–".into(), |n| time(time_s * 1e9 / n))
}

/// A duration in seconds.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{} s", digits(s)),
        s if s < 7200.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Settings that matter for I/O and memory.
pub fn is_telling(name: &str) -> bool {
    const EXACT: [&str; 30] = [
        "shared_buffers",
        "fsync",
        "synchronous_commit",
        "full_page_writes",
        "wal_sync_method",
        "wal_buffers",
        "wal_level",
        "wal_compression",
        "max_wal_size",
        "min_wal_size",
        "checkpoint_timeout",
        "checkpoint_completion_target",
        "commit_delay",
        "effective_io_concurrency",
        "random_page_cost",
        "work_mem",
        "maintenance_work_mem",
        "max_connections",
        "autovacuum",
        "track_io_timing",
        "track_wal_io_timing",
        "huge_pages",
        "synchronous_standby_names",
        "data_checksums",
        "bgwriter_delay",
        "sync_binlog",
        "appendonly",
        "appendfsync",
        "save",
        "maxmemory",
    ];
    EXACT.contains(&name)
        || name.starts_with("innodb_flush")
        || name.starts_with("innodb_log")
        || name == "innodb_buffer_pool_size"
}
