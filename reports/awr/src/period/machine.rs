//! The machine over a period, computed as sysstat computes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::delta::{Delta, Deltas};
use crate::model::Snapshot;

/// The machine, as sar says it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// CPUs.
    pub cpus: f64,
    /// Words about it.
    pub facts: BTreeMap<String, String>,
    /// Percent of CPU time by state.
    pub cpu: BTreeMap<String, f64>,
    /// Disks.
    pub disks: Vec<Disk>,
    /// Percent of the time in which somebody was held up.
    pub pressure: BTreeMap<String, f64>,
    /// Bytes at the end.
    pub memory: BTreeMap<String, f64>,
    /// Per second.
    pub rates: BTreeMap<String, f64>,
    /// Load average at the beginning and the end.
    pub load: [f64; 2],
}

/// A disk, as `sar -d` says it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "sysstat's own words")]
pub struct Disk {
    pub name: String,
    pub tps: f64,
    pub read_kb_s: f64,
    pub write_kb_s: f64,
    pub request_kb: f64,
    pub queue: f64,
    pub await_ms: f64,
    pub util: f64,
    pub flushes_s: f64,
}

/// Everything of the machine.
pub fn machine(snapshots: &[Snapshot], deltas: &Deltas, elapsed_s: f64) -> Machine {
    let (Some(first), Some(last)) = (snapshots.first(), snapshots.last()) else { return Machine::default() };
    let host =
        |s: &Snapshot, name: &str| s.one("host").and_then(|h| h.gauges.get(name).copied()).unwrap_or(0.0);
    let counters = |kind: &str| deltas.of(kind).next().map(|(_, d)| d.counters.clone()).unwrap_or_default();
    let mut rates: BTreeMap<_, _> = counters("vm").into_iter().map(|(n, v)| (n, v / elapsed_s)).collect();
    let cpu = counters("cpu");
    for (name, shown) in [("ctxt", "context switches"), ("processes", "processes made")] {
        rates.extend(cpu.get(name).map(|n| (shown.to_owned(), n / elapsed_s)));
    }
    Machine {
        cpus: host(last, "cpus"),
        facts: last.one("host").map(|h| h.facts.clone()).unwrap_or_default(),
        cpu: cpu_shares(&cpu),
        disks: deltas
            .of("disk")
            .map(|(name, delta)| disk(name, delta, elapsed_s))
            .filter(|d| d.tps > 0.0)
            .collect(),
        pressure: pressure(deltas, elapsed_s),
        memory: last.one("memory").map(|m| m.gauges.clone()).unwrap_or_default(),
        rates,
        load: [host(first, "load"), host(last, "load")],
    }
}

/// Percent of CPU time: user with nice, system with interrupts.
pub fn cpu_shares(ticks: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let of = |names: &[&str]| names.iter().filter_map(|name| ticks.get(*name)).sum::<f64>();
    let groups: [(&str, &[&str]); 5] = [
        ("user", &["user", "nice"]),
        ("system", &["system", "irq", "softirq"]),
        ("iowait", &["iowait"]),
        ("steal", &["steal"]),
        ("idle", &["idle"]),
    ];
    let all: f64 = groups.iter().map(|(_, names)| of(names)).sum();
    let share = |(name, names): &(&str, &[&str])| ((*name).to_owned(), of(names) * 100.0 / all.max(1.0));
    groups.iter().map(share).collect()
}

/// A device as `sar -d` shows it.
pub fn disk(name: &str, delta: &Delta, elapsed_s: f64) -> Disk {
    let of = |names: &[&str]| names.iter().filter_map(|name| delta.counters.get(*name)).sum::<f64>();
    let requests = of(&["reads", "writes", "discards"]);
    let per_request = |value: f64| if requests > 0.0 { value / requests } else { 0.0 };
    let kib = |sectors: f64| sectors / 2.0;
    let (read, written) = (of(&["read_sectors"]), of(&["write_sectors"]));
    Disk {
        name: name.into(),
        tps: requests / elapsed_s,
        read_kb_s: kib(read) / elapsed_s,
        write_kb_s: kib(written) / elapsed_s,
        request_kb: per_request(kib(read + written + of(&["discard_sectors"]))),
        queue: of(&["weighted_ms"]) / (elapsed_s * 1e3),
        await_ms: per_request(of(&["read_ms", "write_ms", "discard_ms"])),
        util: (of(&["busy_ms"]) / (elapsed_s * 10.0)).min(100.0),
        flushes_s: of(&["flushes"]) / elapsed_s,
    }
}

fn pressure(deltas: &Deltas, elapsed_s: f64) -> BTreeMap<String, f64> {
    let shares = deltas.of("pressure").flat_map(|(what, delta)| {
        let share = move |(who, us): (&String, &f64)| (format!("{what} {who}"), us / (elapsed_s * 1e4));
        delta.counters.iter().map(share).collect::<Vec<_>>()
    });
    shares.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_shown_as_sar_shows_it() {
        let counters = [
            ("reads", 100.0),
            ("writes", 900.0),
            ("read_sectors", 800.0),
            ("write_sectors", 7200.0),
            ("read_ms", 50.0),
            ("write_ms", 400.0),
            ("busy_ms", 250.0),
            ("weighted_ms", 5000.0),
        ];
        let delta = Delta { counters: counters.map(|(n, v)| (n.to_owned(), v)).into(), ..Delta::default() };
        let disk = disk("sda", &delta, 10.0);
        assert_eq!((disk.tps, disk.read_kb_s, disk.write_kb_s), (100.0, 40.0, 360.0));
        assert_eq!((disk.request_kb, disk.await_ms, disk.queue, disk.util), (4.0, 0.45, 0.5, 2.5));
    }

    #[test]
    fn shares_of_the_cpu_add_up() {
        let ticks = [("user", 10.0), ("nice", 5.0), ("idle", 80.0), ("softirq", 5.0)];
        let shares = cpu_shares(&ticks.map(|(n, v)| (n.to_owned(), v)).into());
        assert_eq!((shares["user"], shares["system"], shares["idle"]), (15.0, 5.0, 80.0));
    }
}
