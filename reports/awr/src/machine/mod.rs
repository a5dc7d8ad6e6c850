//! The machine: CPU, disks, memory, pressure, from `/proc`. Needs no privileges.

mod disk;
mod idle;
mod memory;
pub mod process;
mod processor;
mod storage;

use std::fs::read_to_string;

pub use idle::Idle;
pub use memory::memory;
pub use storage::storage;

use crate::model::{Reading, Snapshot};

/// Adds the machine's readings.
pub fn capture(snapshot: &mut Snapshot) {
    let boot = snapshot.at.boot_id.clone();
    let stat = read_to_string("/proc/stat").unwrap_or_default();
    snapshot.add("cpu", true, vec![processor::reading(&stat, &boot)]);
    let disks = read_to_string("/proc/diskstats").unwrap_or_default();
    snapshot.add("disk", true, disk::readings(&disks, &boot));
    let pressure: Vec<_> = ["cpu", "io", "memory"].iter().filter_map(|what| pressure(what, &boot)).collect();
    if pressure.is_empty() {
        snapshot.notes.push("pressure stall information is not available (psi=0, or a container)".into());
    }
    snapshot.add("pressure", true, pressure);
    snapshot.add("memory", true, vec![memory::reading()]);
    snapshot.add("vm", true, vec![vm(&read_to_string("/proc/vmstat").unwrap_or_default(), &boot)]);
    snapshot.add("host", true, vec![host()]);
}

/// Name of the machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn host() -> Reading {
    let uname = rustix::system::uname();
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let model = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        model.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1).map(str::to_owned));
    let load = read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().and_then(|v| v.parse().ok()).unwrap_or(0.0);
    Reading::new("host", "", "")
        .gauge("cpus", cpus as f64)
        .gauge("load", load)
        .fact("kernel", uname.release().to_string_lossy())
        .fact("cpu", model.unwrap_or_else(|| "unknown".into()))
}

/// `some avg10=0.00 … total=123`: microseconds in which somebody (`some`) or everybody (`full`) was held up.
fn pressure(what: &str, boot: &str) -> Option<Reading> {
    let text = read_to_string(format!("/proc/pressure/{what}")).ok()?;
    let mut reading = Reading::new("pressure", what, boot);
    for line in text.lines() {
        let (who, total) = (line.split(' ').next()?, line.split("total=").nth(1)?);
        reading = reading.counter(who, total.trim().parse().ok()?);
    }
    Some(reading)
}

fn vm(vmstat: &str, boot: &str) -> Reading {
    let wanted = ["pgmajfault", "pswpin", "pswpout", "oom_kill", "pgpgin", "pgpgout"];
    let pairs = vmstat.lines().filter_map(|line| line.split_once(' '));
    let kept = pairs.filter(|(name, _)| wanted.contains(name));
    kept.fold(Reading::new("vm", "", boot), |r, (name, value)| r.counter(name, value.parse().unwrap_or(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_read() {
        let mut snapshot = Snapshot { at: crate::clock::now(), ..Snapshot::default() };
        capture(&mut snapshot);
        assert!(snapshot.one("cpu").is_some_and(|r| r.counters["idle"] > 0.0));
        assert!(snapshot.one("memory").is_some_and(|r| r.gauges["MemTotal"] > 1e6));
        assert!(snapshot.one("host").is_some_and(|r| r.gauges["cpus"] >= 1.0));
    }
}
