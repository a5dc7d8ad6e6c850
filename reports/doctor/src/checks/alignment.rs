//! Partitions that begin in the middle of what the device writes at once.

use crate::finding::{Finding, Sure};
use crate::machine::{Disk, Partition};
use crate::view::View;

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let disks = view.leaves().into_iter();
    disks
        .flat_map(|disk| disk.partitions.iter().filter_map(|part| crooked(disk, part)).collect::<Vec<_>>())
        .collect()
}

fn crooked(disk: &Disk, part: &Partition) -> Option<Finding> {
    let unit = disk.sectors.1.max(4096);
    (!part.start.is_multiple_of(unit)).then(|| {
        let sure = if disk.sectors.1 >= 4096 { Sure::High } else { Sure::Medium };
        Finding::speed("partition-misaligned", &part.name)
            .what(format!("{} begins at byte {}, which is not a multiple of {unit}", part.name, part.start))
            .why(
                "Each page of 4 KiB covers two of the device's blocks: the device reads both and writes \
                 both, and a power cut can tear either",
            )
            .sure(sure, format!("the device names physical sectors of {} bytes", disk.sectors.1))
            .type_in(format!(
                "parted /dev/{} unit s print      # make it anew from sector 2048 on",
                disk.name
            ))
    })
}
