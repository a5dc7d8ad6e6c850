//! Which disks share what: redo and data on one disk, or behind one controller.

use crate::finding::{Finding, Sure};
use crate::machine::Disk;
use crate::place::Place;
use crate::view::View;

/// The findings: where a database's log and data are known.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    if view.database.is_none() {
        return Vec::new();
    }
    let Some((data, log)) = view.data().zip(view.log()) else { return Vec::new() };
    same_disk(data, log).or_else(|| same_controller(data, log)).into_iter().collect()
}

fn leaves<'m>(place: &Place<'m>) -> Vec<&'m Disk> {
    place.stack.iter().copied().filter(|disk| !disk.link.is_stacked()).collect()
}

fn same_disk(data: &Place<'_>, log: &Place<'_>) -> Option<Finding> {
    let below = leaves(data);
    let shared = leaves(log).into_iter().find(|disk| below.iter().any(|other| other.name == disk.name))?;
    let turns = shared.rotational && !shared.link.is_virtual();
    let finding = match turns {
        true => Finding::speed("log-and-data-on-one-disk", &shared.name),
        false => Finding::information("log-and-data-on-one-disk", &shared.name),
    };
    Some(
        finding
            .what(format!("The redo log and the data both lie on {}", shared.name))
            .why(
                "A commit's write waits among the reads and the checkpoint's writes, and the loss of one \
                 disk loses both. A log on a device of its own, or Seawall's on persistent memory, does not \
                 wait for them",
            )
            .sure(if turns { Sure::High } else { Sure::Medium }, "how much it costs depends on the load")
            .type_in(format!("iostat -x {} 1", shared.name)),
    )
}

fn same_controller(data: &Place<'_>, log: &Place<'_>) -> Option<Finding> {
    let (below, above) = (leaves(data), leaves(log));
    let of = |disk: &Disk| disk.controller.clone();
    let pair = above.iter().find_map(|log| {
        let data = below.iter().find(|data| of(data).is_some() && of(data) == of(log))?;
        Some((*log, *data))
    })?;
    let controller = of(pair.0).unwrap_or_default();
    Some(
        Finding::information("log-and-data-behind-one-controller", &pair.0.name)
            .what(format!(
                "{} (log) and {} (data) are behind one controller, {controller}",
                pair.0.name, pair.1.name
            ))
            .why("Under a heavy load of reads the log's writes share its queue and its bandwidth")
            .sure(Sure::Medium, "many controllers have enough of both")
            .type_in(format!("lspci -s {controller}")),
    )
}
