//! Persistent memory: how it is divided and used. `pmem_media` looks at its media.

use crate::finding::{Finding, Sure};
use crate::machine::{Namespace, Region};
use crate::view::View;

/// A file system can map this much at once.
const HUGE: u64 = 2 << 20;

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for space in view.namespaces() {
        found.extend([mode(space), align(space)].into_iter().flatten());
    }
    if view.is_whole {
        found.extend(view.machine.pmem.regions.iter().filter_map(|region| unused(view, region)));
        found.extend(interleave(view));
    }
    found
}

fn mode(space: &Namespace) -> Option<Finding> {
    let device = space.device.as_deref().unwrap_or("no device");
    let mend = format!("ndctl create-namespace --force --reconfig={} --mode=fsdax", space.name);
    let (finding, why) = match space.mode {
        "raw" => (
            Finding::durability("pmem-raw", &space.name),
            "It has no page structures, so no file system maps it with MAP_SYNC, and no BTT, so a power cut \
             tears sectors: only 8 bytes are written whole. XFS mounts it all the same, without DAX and \
             without a warning",
        ),
        "sector" => (
            Finding::speed("pmem-sector", &space.name),
            "Sectors are whole after a power cut (BTT), but every write goes through the page cache and a \
             table: DAX is not possible. For a log of Seawall, or any DAX file system, use fsdax",
        ),
        "devdax" => (
            Finding::information("pmem-devdax", &space.name),
            "A program maps the whole device; a file system cannot be on it",
        ),
        _ => return None,
    };
    Some(
        finding
            .what(format!("{} ({device}, {} MiB) is in mode {}", space.name, space.bytes >> 20, space.mode))
            .why(why)
            .type_in(format!("{mend}      # this erases it: move the data first")),
    )
}

fn align(space: &Namespace) -> Option<Finding> {
    let align = space.align.filter(|align| *align < HUGE && space.mode != "raw")?;
    Some(
        Finding::speed("pmem-alignment", &space.name)
            .what(format!("{} is aligned to {} KiB", space.name, align >> 10))
            .why(
                "Files on it are mapped in pages of 4 KiB: the first touch of each page is a fault, where \
                 pages of 2 MiB take one fault instead of 512",
            )
            .type_in(format!(
                "ndctl create-namespace --force --reconfig={} --align=2M      # this erases it",
                space.name
            )),
    )
}

/// A namespace without a label takes no label's space, so the region counts all of it as free: sizes have the last word.
fn unused(view: &View<'_>, region: &Region) -> Option<Finding> {
    let spaces = view.machine.pmem.namespaces.iter().filter(|space| space.region == region.name);
    let taken: u64 = spaces.map(|space| space.bytes).sum();
    let free = region.free.min(region.bytes.saturating_sub(taken));
    (free >= HUGE).then(|| {
        Finding::information("pmem-unused", &region.name)
            .what(format!("{} MiB of {} belong to no namespace", free >> 20, region.name))
            .why("No database can use that part")
            .type_in(format!("ndctl create-namespace --region={} --mode=fsdax", region.name))
    })
}

/// Several regions of one module each on one node: the memory controllers work one after the other.
fn interleave(view: &View<'_>) -> Option<Finding> {
    let regions = &view.machine.pmem.regions;
    let single: Vec<_> = regions.iter().filter(|region| region.ways == 1 && region.node.is_some()).collect();
    let together = single.iter().find(|a| single.iter().any(|b| a.name != b.name && a.node == b.node))?;
    Some(
        Finding::speed("pmem-not-interleaved", &together.name)
            .what(format!("{} regions have one module each", single.len()))
            .why(
                "Writes to one namespace go to one module alone, with a sixth of the bandwidth that six interleaved ones have. A \
                 module that fails takes less with it, though",
            )
            .sure(Sure::High, "the kernel counts the modules of each region")
            .type_in("ipmctl create -goal PersistentMemoryType=AppDirect      # this erases all of it, after a reboot"),
    )
}
