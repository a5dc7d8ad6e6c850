//! Block devices: what `/proc/diskstats` counts, under the kernel's names.

use crate::model::Reading;

/// Columns behind the name. Times are in milliseconds, sectors have 512 bytes.
const COLUMNS: [&str; 17] = [
    "reads",
    "reads_merged",
    "read_sectors",
    "read_ms",
    "writes",
    "writes_merged",
    "write_sectors",
    "write_ms",
    "in_flight",
    "busy_ms",
    "weighted_ms",
    "discards",
    "discards_merged",
    "discard_sectors",
    "discard_ms",
    "flushes",
    "flush_ms",
];

/// One reading per device that has ever done anything; no loop or RAM devices.
pub fn readings(diskstats: &str, boot: &str) -> Vec<Reading> {
    diskstats.lines().filter_map(|line| reading(line, boot)).collect()
}

fn reading(line: &str, boot: &str) -> Option<Reading> {
    let mut words = line.split_ascii_whitespace().skip(2);
    let name = words.next().filter(|name| !name.starts_with("loop") && !name.starts_with("ram"))?;
    let mut reading = Reading::new("disk", name, boot);
    for (column, value) in COLUMNS.iter().zip(words) {
        let value: f64 = value.parse().ok()?;
        match *column {
            "in_flight" => drop(reading.gauges.insert((*column).into(), value)),
            column => drop(reading.counters.insert(column.into(), value)),
        }
    }
    reading.counters.values().any(|value| *value > 0.0).then_some(reading)
}

#[cfg(test)]
mod tests {
    #[test]
    fn devices_that_did_something_are_read() {
        let text = "   7       0 loop0 9 0 9 9 9 9 9 9 0 9 9\n 259 0 nvme0n1 10 1 80 4 20 2 320 40 3 30 44 0 0 0 0 5 6\n \
                    259 1 nvme0n1p1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        let found = super::readings(text, "b");
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].counters["writes"], found[0].counters["flushes"], found[0].gauges["in_flight"]),
            (20.0, 5.0, 3.0)
        );
    }
}
