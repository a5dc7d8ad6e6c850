//! The machine: its processors, disks and memory.

use seawall_awr::model::{Reading, Snapshot};

use super::with;

/// What it has counted after so many minutes.
pub fn add(snapshot: &mut Snapshot, m: f64) {
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
