//! Metrics of virtual machines' disks.

use super::exposition::{Exposition, Kind};
use crate::disks::Disk;

/// What is counted, as in [`Counts`](crate::disks::Counts). A process that is replaced counts anew, as counters may.
const COUNTERS: [(&str, &str); 6] = [
    ("seawall_disk_reads_total", "Reads of a guest."),
    ("seawall_disk_read_bytes_total", "Bytes that a guest's reads asked for."),
    ("seawall_disk_writes_total", "Writes of a guest."),
    ("seawall_disk_written_bytes_total", "Bytes that a guest's writes brought."),
    ("seawall_disk_flushes_total", "Flushes of a guest."),
    ("seawall_disk_discards_total", "Discards and writes of zeros of a guest."),
];

/// All of them.
pub fn export(out: &mut Exposition, disks: &[Disk]) {
    for disk in disks {
        let image = disk.image.display().to_string();
        let labels = [("image", image.as_str())];
        let gauges = [
            ("seawall_disk_size_bytes", "Size of a guest's disk.", disk.bytes as f64),
            ("seawall_disk_queues", "Queues that a guest uses; 0: there is no guest.", disk.queues as f64),
        ];
        gauges.iter().for_each(|(name, help, n)| out.value(name, Kind::Gauge, help, &labels, *n));
        for ((name, help), n) in COUNTERS.iter().zip(disk.counts) {
            out.value(name, Kind::Counter, help, &labels, n as f64);
        }
    }
}
