//! Writes that a device keeps whole through a power cut.

use crate::finding::{Finding, Sure};
use crate::view::View;

/// The findings: only where a database's pages are in question.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let Some((database, place)) = view.database.as_ref().zip(view.data()) else { return Vec::new() };
    let Some(disk) = place.stack.last() else { return Vec::new() };
    let Some(bytes) = disk.atomic.filter(|bytes| *bytes >= database.page && database.page > 0) else {
        return Vec::new();
    };
    vec![
        Finding::information("atomic-writes", &disk.name)
            .what(format!(
                "{} writes up to {bytes} bytes whole or not at all; a page of {} has {}",
                disk.name,
                database.engine.name(),
                database.page
            ))
            .why(
                "A database that asks for it (RWF_ATOMIC, on ext4 or XFS) needs no copies of its pages. None \
                 of the databases that Seawall knows asks for it today",
            )
            .sure(
                Sure::Medium,
                "the device claims it; every layer between file and device must keep the request whole",
            )
            .type_in(format!("cat /sys/block/{}/queue/atomic_write_*", disk.name)),
    ]
}
