//! Seawall: its log, its waits, its files and its block cache.

use seawall_awr::model::{Reading, Snapshot};

use super::with;

/// What it has counted after so many minutes.
pub fn add(snapshot: &mut Snapshot, m: f64) {
    add_log(snapshot, m);
    add_waits(snapshot, m);
    add_files(snapshot, m);
    add_block_cache(snapshot, m);
}

fn add_log(snapshot: &mut Snapshot, m: f64) {
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
}

fn add_waits(snapshot: &mut Snapshot, m: f64) {
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
        .map(|(name, stage, power, n)| event("seawall event", name, *power, *n * m).fact("stage", *stage));
    snapshot.add("seawall event", true, all.collect());
    let classes = [("log file", 11, 80_000.0), ("data file", 13, 10_000.0)];
    let all = classes.iter().map(|(class, power, n)| {
        let reading = event("seawall class event", &format!("{class}: log file sync"), *power, *n * m);
        reading.fact("class", *class).fact("event", "log file sync").fact("stage", "engine")
    });
    snapshot.add("seawall class event", true, all.collect());
}

/// So many waits, a hump around 2^power ns, the tail as long as waits are.
fn event(kind: &str, item: &str, power: u32, count: f64) -> Reading {
    let mut reading = Reading::new(kind, item, "e").counter("count", count);
    let mut sum = 0.0;
    for (step, share) in [0.04, 0.18, 0.4, 0.24, 0.1, 0.03, 0.008, 0.0015, 0.0004].iter().enumerate() {
        for quarter in 0..4u64 {
            let octave = 1u64 << (power + step as u32);
            let floor = octave + octave / 4 * quarter;
            let n = (count * share / 4.0).floor();
            reading = reading.counter(&format!("bucket {floor}"), n);
            sum += n * floor as f64;
        }
    }
    reading.counter("sum_ns", sum)
}

fn add_files(snapshot: &mut Snapshot, m: f64) {
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
}

/// A block cache that twice the size would make a good one.
fn add_block_cache(snapshot: &mut Snapshot, m: f64) {
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
