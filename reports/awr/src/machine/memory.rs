//! Memory: how much there is, and how much is in use for what.

use std::fs::read_to_string;

use crate::model::Reading;

const WANTED: [&str; 8] =
    ["MemTotal", "MemAvailable", "Cached", "Dirty", "Writeback", "SwapTotal", "SwapFree", "HugePages_Total"];

/// This machine's memory as a reading.
pub(super) fn reading() -> Reading {
    let text = text();
    let wanted = fields(&text).filter(|(name, _)| WANTED.contains(name));
    wanted.fold(Reading::new("memory", "", ""), |r, (name, value)| r.gauge(name, value as f64))
}

/// What the kernel says of this machine's memory by this name (`MemTotal`, `MemAvailable`), in bytes. `None` if it says nothing.
pub fn memory(name: &str) -> Option<u64> {
    fields(&text()).find(|(field, _)| *field == name).map(|(_, bytes)| bytes)
}

fn text() -> String {
    read_to_string("/proc/meminfo").unwrap_or_default()
}

/// Names, and bytes; of huge pages their number.
fn fields(meminfo: &str) -> impl Iterator<Item = (&str, u64)> {
    let lines = meminfo.lines().filter_map(|line| line.split_once(':'));
    lines.filter_map(|(name, value)| {
        let number: u64 = value.trim().trim_end_matches(" kB").parse().ok()?;
        Some((name, if value.ends_with("kB") { number * 1024 } else { number }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_in_bytes() {
        let found: Vec<_> = fields("MemTotal:  2 kB\nHugePages_Total:  3\n").collect();
        assert_eq!(found, [("MemTotal", 2048), ("HugePages_Total", 3)]);
    }
}
