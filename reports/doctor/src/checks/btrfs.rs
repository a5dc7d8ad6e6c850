//! btrfs over several devices: what is missing, and what one of them takes with it.

use crate::finding::{Finding, Sure};
use crate::machine::Btrfs;
use crate::view::View;

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let under = view.disks();
    let is_meant = |found: &&Btrfs| {
        let is_under = |device: &String| {
            view.machine.disk(device).is_some_and(|disk| under.iter().any(|one| one.name == disk.name))
        };
        view.is_whole || found.devices.iter().any(is_under)
    };
    let found = view.machine.btrfs.iter().filter(is_meant);
    found.flat_map(|found| [missing(found), one_copy(found), hole(found)]).flatten().collect()
}

fn named(found: &Btrfs) -> String {
    if found.label.is_empty() { found.uuid.clone() } else { found.label.clone() }
}

fn missing(found: &Btrfs) -> Option<Finding> {
    (found.missing > 0).then(|| {
        Finding::durability("btrfs-device-missing", named(found))
            .what(format!("btrfs {} lacks {} of its devices", named(found), found.missing))
            .why("Data that is written meanwhile has fewer copies, and keeps fewer when the device is back")
            .type_in("btrfs filesystem show")
            .type_in("btrfs replace start MISSING_ID /dev/NEW MOUNT_POINT")
    })
}

fn one_copy(found: &Btrfs) -> Option<Finding> {
    let single = |(_, profile): &&(&str, String)| matches!(profile.as_str(), "single" | "dup" | "raid0");
    let (kind, profile) = found.profiles.iter().find(single).filter(|_| found.devices.len() > 1)?;
    Some(
        Finding::information("btrfs-one-copy", named(found))
            .what(format!(
                "btrfs {} spans {} devices, and the profile of its {kind} is {profile}",
                named(found),
                found.devices.len()
            ))
            .why("The loss of any one of them destroys the file system")
            .sure(Sure::High, "the kernel shows which profile holds data")
            .type_in("btrfs balance start -dconvert=raid1 -mconvert=raid1 MOUNT_POINT"),
    )
}

fn hole(found: &Btrfs) -> Option<Finding> {
    let (kind, profile) =
        found.profiles.iter().find(|(_, profile)| matches!(profile.as_str(), "raid5" | "raid6"))?;
    Some(
        Finding::durability("btrfs-write-hole", named(found))
            .what(format!("btrfs {} keeps its {kind} as {profile}", named(found)))
            .why(
                "A power cut between data and parity, followed by the loss of a device, damages blocks that \
                 were never written to; btrfs's own pages call these profiles unfit for production",
            )
            .type_in("btrfs balance start -dconvert=raid1 -mconvert=raid1c3 MOUNT_POINT"),
    )
}
