//! An hour of a PostgreSQL under load, made up: 61 snapshots a minute apart, a sample every second. Checkpoints
//! every ten minutes, sessions that wait for each other's rows from the fortieth minute on.

use std::collections::BTreeMap;

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
    machine(&mut snapshot, minute as f64);
    database(&mut snapshot, minute as f64, hour);
    if hour == Hour::Seawall {
        seawall(&mut snapshot, minute as f64);
    }
    snapshot
}

fn with(reading: Reading, counters: &[(&str, f64)]) -> Reading {
    counters.iter().fold(reading, |r, (name, value)| r.counter(name, *value))
}

fn machine(snapshot: &mut Snapshot, m: f64) {
    let wave = 200.0 * (m / 4.0).sin();
    let cpu = [
        ("user", 3500.0 * m + wave),
        ("system", 1700.0 * m - wave / 2.0),
        ("iowait", 900.0 * m + wave / 3.0),
        ("idle", 5800.0 * m),
        ("softirq", 100.0 * m),
        ("steal", 20.0 * m),
        ("ctxt", 900_000.0 * m),
    ];
    snapshot.add("cpu", true, vec![with(Reading::new("cpu", "", "b"), &cpu)]);
    let disk = |name: &str, scale: f64| {
        let counters = [
            ("reads", 3000.0 * m * scale),
            ("writes", 24_000.0 * m * scale + 300.0 * wave * scale),
            ("read_sectors", 48_000.0 * m * scale),
            ("write_sectors", 900_000.0 * m * scale),
            ("read_ms", 2400.0 * m * scale),
            ("write_ms", 30_000.0 * m * scale),
            ("busy_ms", 31_000.0 * m * scale + 40.0 * wave),
            ("weighted_ms", 50_000.0 * m * scale),
            ("flushes", 9000.0 * m * scale),
        ];
        with(Reading::new("disk", name, "b"), &counters)
    };
    snapshot.add("disk", true, vec![disk("nvme0n1", 1.0), disk("sda", 0.4)]);
    let pressure = |what: &str, us: f64| {
        with(Reading::new("pressure", what, "b"), &[("some", us * m), ("full", us * m / 3.0)])
    };
    let all = vec![pressure("cpu", 4e6), pressure("io", 9e6), pressure("memory", 1e3)];
    snapshot.add("pressure", true, all);
    let memory = Reading::new("memory", "", "")
        .gauge("MemTotal", 64e9)
        .gauge("MemAvailable", 31e9)
        .gauge("Cached", 28e9);
    snapshot.add("memory", true, vec![memory.gauge("Dirty", 3e8)]);
    let host = Reading::new("host", "", "").gauge("cpus", 8.0).gauge("load", 6.5);
    snapshot.add(
        "host",
        true,
        vec![host.fact("kernel", "6.1.0-40-amd64").fact("cpu", "AMD EPYC 7763 64-Core Processor")],
    );
}

fn database(snapshot: &mut Snapshot, m: f64, hour: Hour) {
    let fast = if hour == Hour::Seawall { 2.6 } else { 1.0 };
    let n = m * fast;
    let counters = [
        ("xact_commit", 96_000.0 * n + 2000.0 * (m / 3.0).sin().abs()),
        ("xact_rollback", 12.0 * n),
        ("blks_hit", 4.1e6 * n),
        ("blks_read", 38_000.0 * n),
        ("blk_read_time", 21_000.0 * n),
        ("blk_write_time", 900.0 * n),
        ("active_time", if hour == Hour::Disk { 560_000.0 } else { 270_000.0 } * m),
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
    let wal = [
        ("wal_records", 900_000.0 * n),
        ("wal_fpi", 9000.0 * n),
        ("wal_bytes", 1.3e8 * n),
        ("wal_write", 31_000.0 * n),
        ("wal_sync", 29_000.0 * n),
        ("wal_write_time", 2400.0 * n),
        ("wal_sync_time", if hour == Hour::Disk { 41_000.0 } else { 15.0 } * n),
    ];
    snapshot.add("pg_stat_wal", true, vec![with(Reading::new("pg_stat_wal", "", "s"), &wal)]);
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
    snapshot.add("server", true, vec![Reading::new("server", "", "s").counter("cpu_s", 190.0 * m)]);
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

fn seawall(snapshot: &mut Snapshot, m: f64) {
    let log = Reading::new("seawall", "", "e")
        .gauge("size", 4e9)
        .gauge("segments", 1000.0)
        .gauge("segments_free", 900.0);
    let log = log
        .gauge("backlog_bytes", 4e8)
        .counter("fill 5", 600.0 * m)
        .counter("fill 40", 60.0 * m)
        .counter("fill 50", 6.0 * m);
    let log = log.fact("medium", "persistent memory: survives power loss").fact("medium_name", "pmem");
    snapshot.add(
        "seawall",
        true,
        vec![log.fact("because", "fsdax, MAP_SYNC").fact("pool", "/mnt/pmem/seawall.pool")],
    );
    // A hump of waits around 2^power ns, the tail as long as waits are.
    let event = |kind: &str, item: &str, power: u32, count: f64| {
        let mut reading = Reading::new(kind, item, "e").counter("count", count * m);
        let mut sum = 0.0;
        for (step, share) in [0.04, 0.18, 0.4, 0.24, 0.1, 0.03, 0.008, 0.0015, 0.0004].iter().enumerate() {
            for quarter in 0..4u64 {
                let octave = 1u64 << (power + step as u32);
                let floor = octave + octave / 4 * quarter;
                let n = (count * m * share / 4.0).floor();
                reading = reading.counter(&format!("bucket {floor}"), n);
                sum += n * floor as f64;
            }
        }
        reading.counter("sum_ns", sum)
    };
    let events = [
        ("log file parallel write", "persist", 9, 90_000.0),
        ("log file sync", "engine", 11, 90_000.0),
        ("publish", "publish", 10, 90_000.0),
        ("destage write", "destage", 21, 60.0),
        ("db flash cache single block physical read", "cache", 9, 71_000.0),
        ("db file sequential read", "cache", 19, 24_000.0),
    ];
    let all = events
        .iter()
        .map(|(name, stage, power, n)| event("seawall event", name, *power, *n).fact("stage", *stage));
    snapshot.add("seawall event", true, all.collect());
    let classes = [("log file", 11, 80_000.0), ("data file", 13, 10_000.0)];
    let all = classes.iter().map(|(class, power, n)| {
        let reading = event("seawall class event", &format!("{class}: log file sync"), *power, *n);
        reading.fact("class", *class).fact("event", "log file sync").fact("stage", "engine")
    });
    snapshot.add("seawall class event", true, all.collect());
    let file = |id: &str, path: &str, class: &str, writes: f64| {
        let counters = [
            ("writes", writes * m),
            ("bytes", writes * 8192.0 * m),
            ("absorbed", writes * m / 2.0),
            ("real_syncs", m.min(2.0)),
        ];
        with(Reading::new("seawall file", id, "e"), &counters).fact("path", path).fact("class", class)
    };
    let files = vec![
        file("1.1", "/var/lib/postgresql/15/main/pg_wal/000000010000000A000000C3", "log file", 50_000.0),
        file("2.1", "/var/lib/postgresql/15/main/pg_wal/000000010000000A000000C4", "log file", 30_000.0),
        file("3.1", "/var/lib/postgresql/15/main/base/16384/16397", "data file", 10_000.0),
    ];
    snapshot.add("seawall file", true, files);
    block_cache(snapshot, m);
}

/// A block cache that twice the size would make a good one.
fn block_cache(snapshot: &mut Snapshot, m: f64) {
    let counters =
        [("hits", 71_000.0 * m), ("misses", 24_000.0 * m), ("admitted", 900.0 * m), ("failures", 0.0)];
    let gauges = [
        ("size", 8.0 * 1_073_741_824.0),
        ("block_bytes", 8192.0),
        ("blocks", 1_045_000.0),
        ("blocks_used", 960_000.0),
        ("files", 3.0),
        ("files_not_served", 1.0),
    ];
    let cache = with(Reading::new("seawall cache", "", "e z"), &counters);
    let cache = gauges.iter().fold(cache, |cache, (name, n)| cache.gauge(name, *n));
    let cache = cache.fact("path", "/mnt/pmem/seawall.pool.cache").fact("medium_name", "pmem");
    snapshot.add("seawall cache", true, vec![cache]);
    let size = |(percent, hits): (f64, f64)| {
        let size = Reading::new("seawall cache size", percent.to_string(), "e z 7");
        let size = with(size, &[("reads", 1500.0 * m), ("hits", 1500.0 * m * hits)]);
        size.gauge("size", percent / 100.0 * 8.0 * 1_073_741_824.0)
    };
    let sizes = [(50.0, 0.61), (100.0, 0.75), (200.0, 0.91), (400.0, 0.93)].map(size);
    snapshot.add("seawall cache size", true, sizes.into());
    let file = |id: &str, path: &str, hits: f64, misses: f64| {
        let file = Reading::new("seawall cache file", id, "z");
        with(file, &[("hits", hits * m), ("misses", misses * m)])
            .fact("path", path)
            .fact("class", "data file")
    };
    let stranger = "a program without Seawall has it open, or had a moment ago";
    let files = vec![
        file("0.1", "/var/lib/postgresql/15/main/base/16384/16397", 50_000.0, 21_000.0),
        file("1.1", "/var/lib/postgresql/15/main/base/16384/16397.1", 17_000.0, 2600.0),
        file("2.1", "/var/lib/postgresql/15/main/base/16384/16405", 4000.0, 400.0)
            .fact("not_served", stranger),
    ];
    snapshot.add("seawall cache file", true, files);
    let relation =
        Reading::new("relation", "base/16384/16397", "s").fact("relation", "public.pgbench_accounts");
    snapshot.add("relation", false, vec![relation]);
}
