//! How far the log is from the processors.

use crate::finding::{Finding, Sure};
use crate::machine::{Link, Node};
use crate::view::View;

/// The findings: where a place is known.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let nodes: Vec<&Node> = view.machine.memory.nodes.iter().filter(|node| node.has_cpus).collect();
    let Some(place) = view.log().filter(|_| nodes.len() > 1) else { return Vec::new() };
    let Some(disk) = place.stack.last() else { return Vec::new() };
    let region = view.machine.pmem.namespaces.iter().find(|space| space.device.as_ref() == Some(&disk.name));
    let region =
        region.and_then(|space| view.machine.pmem.regions.iter().find(|region| region.name == space.region));
    let Some(home) = region.and_then(|region| region.node).or(disk.node) else { return Vec::new() };
    let far = nodes.iter().filter(|node| node.number != home);
    let distance = far.filter_map(|node| node.distances.get(home as usize)).max().copied().unwrap_or(0);
    if distance <= 10 {
        return Vec::new();
    }
    let what = format!(
        "{} is at node {home}; other processors reach it over a distance of {distance} (10 is near)",
        disk.name
    );
    // Memory is read and written by the processor itself, a disk only notified.
    let finding = match disk.link {
        Link::Pmem => Finding::speed("log-on-far-node", &disk.name),
        _ => Finding::information("log-on-far-node", &disk.name),
    };
    vec![
        finding
            .what(what)
            .why("A commit from a far processor crosses the link between the sockets: for persistent memory that is about twice the time")
            .sure(Sure::Medium, "Seawall did not examine where the server's processes run")
            .type_in(format!("numactl --cpunodebind={home} --preferred={home} COMMAND"))
            .type_in(format!("# systemd: NUMAPolicy=preferred, NUMAMask={home}, CPUAffinity=numa")),
    ]
}
