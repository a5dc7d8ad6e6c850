//! Disks that are lost when their virtual machine stops.

use crate::finding::{Finding, Sure};
use crate::view::View;

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let named = !view.is_whole;
    let about = |subject: &str| match named {
        true => Finding::durability("disk-is-ephemeral", subject),
        false => Finding::information("disk-is-ephemeral", subject),
    };
    let by_model = view.leaves().into_iter().filter(|disk| disk.is_ephemeral()).map(|disk| {
        about(&disk.name)
            .what(format!("{} ({}) lives no longer than this virtual machine", disk.name, disk.model))
            .why("A stop, a move to another host or a failure of this one loses everything on it. A reboot does not")
            .sure(Sure::High, "the cloud gives this name to its local disks")
            .type_in(
                "# keep here only data that another host or a volume has too: replicas, caches, temporary \
                 tables",
            )
    });
    let marked =
        view.mounts().into_iter().filter(|mount| view.machine.host.marked_temporary.contains(&mount.point));
    let by_note = marked.map(|mount| {
        about(&mount.point.display().to_string())
            .what(format!("{} is the temporary disk of this virtual machine", mount.point.display()))
            .why("A deallocation or a move to another host loses everything on it")
            .sure(Sure::High, "the agent of the cloud left a warning there: DATALOSS_WARNING_README.txt")
            .type_in("# keep here only temporary tables and swap")
    });
    by_model.chain(by_note).collect()
}
