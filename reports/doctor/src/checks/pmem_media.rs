//! Persistent memory: whether it is any, what a power cut leaves of it, and its modules' health.

use crate::finding::{Finding, Sure};
use crate::machine::{Dimm, Region};
use crate::view::View;

/// Flags of the firmware that say that data may not be saved, or was not.
const TROUBLES: [&str; 5] = ["save_fail", "restore_fail", "flush_fail", "not_armed", "map_fail"];

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    if !view.is_whole && view.namespaces().is_empty() {
        return Vec::new();
    }
    let pmem = &view.machine.pmem;
    let mut found: Vec<Finding> = pmem.regions.iter().filter_map(bad).collect();
    found.extend(pmem.dimms.iter().flat_map(|dimm| [trouble(dimm), dirty(dimm)]).flatten());
    match made_of_ram(view) {
        Some(finding) => found.push(finding),
        None => found.extend(pmem.regions.iter().filter_map(|region| domain(region, view))),
    }
    found
}

fn made_of_ram(view: &View<'_>) -> Option<Finding> {
    let machine = view.machine;
    let asked =
        machine.command_line.split(' ').find(|word| word.starts_with("memmap=") && word.contains('!'));
    let legacy = machine.pmem.providers.iter().any(|provider| provider == "e820");
    (legacy && !machine.pmem.regions.is_empty()).then(|| {
        let sure = if asked.is_some() { Sure::High } else { Sure::Medium };
        let because = asked.map_or_else(
            || "only the firmware's memory map says that it persists; old NVDIMMs look the same".to_owned(),
            |word| format!("the kernel was started with {word}"),
        );
        Finding::durability("pmem-is-ram", &machine.pmem.regions[0].name)
            .what(
                "The persistent memory of this machine is ordinary RAM that the kernel was configured to \
                 call persistent",
            )
            .why("The kernel grants MAP_SYNC on it, and a power cut empties it: use it for trials only")
            .sure(sure, because)
            .type_in("# take memmap=…!… out of the kernel's command line (GRUB_CMDLINE_LINUX)")
    })
}

fn domain(region: &Region, view: &View<'_>) -> Option<Finding> {
    let virtual_machine = view.machine.cpu.hypervisor;
    match region.domain.as_str() {
        // Where no store is claimed to be durable by itself, there is no domain to ask about.
        _ if region.virtio => None,
        "memory_controller" => None,
        "cpu_cache" => Some(
            Finding::information("pmem-persistence-domain", &region.name)
                .what(format!("The persistence domain of {} reaches into the processors' caches", region.name))
                .why("Stores need no flush instruction, only a fence"),
        ),
        _ => Some(
            Finding::durability("pmem-domain-unknown", &region.name)
                .what(format!(
                    "The platform does not say what a power cut leaves of {} (persistence_domain is empty or \
                     missing)",
                    region.name
                ))
                .why(
                    "The kernel cannot tell whether a store that has left the processor's cache is safe: the \
                     platform makes no such promise",
                )
                .sure(
                    if virtual_machine { Sure::Medium } else { Sure::Low },
                    if virtual_machine {
                        "a hypervisor says nothing unless it is configured to; what backs this memory on the \
                         host is not visible from here"
                    } else {
                        "old firmware says nothing, even about good modules"
                    },
                )
                .type_in("ndctl list -R -i        # persistence_domain")
                .type_in("# QEMU: -machine nvdimm=on,nvdimm-persistence=mem-ctrl, if the host's file is on persistent memory"),
        ),
    }
}

fn bad(region: &Region) -> Option<Finding> {
    (region.bad_blocks > 0).then(|| {
        Finding::durability("pmem-bad-blocks", &region.name)
            .what(format!("{} has {} ranges that cannot be read", region.name, region.bad_blocks))
            .why("A program that touches one is killed (SIGBUS); the data in it is lost")
            .type_in(format!("ndctl list -M -r {}", region.name))
            .type_in("ndctl clear-errors NAMESPACE       # then restore the files that lay there")
    })
}

fn trouble(dimm: &Dimm) -> Option<Finding> {
    let flags: Vec<_> = dimm.flags.iter().filter(|flag| TROUBLES.contains(&flag.as_str())).cloned().collect();
    (!flags.is_empty()).then(|| {
        Finding::durability("pmem-module-trouble", &dimm.name)
            .what(format!("The module {} reports {}", dimm.name, flags.join(", ")))
            .why("The next power cut may lose its content, or the last one has")
            .sure(Sure::High, "its firmware says so")
            .type_in(format!("ndctl list -D -H -d {}", dimm.name))
            .type_in("# move the data off this module and have it replaced")
    })
}

fn dirty(dimm: &Dimm) -> Option<Finding> {
    let times = dimm.dirty_shutdowns.filter(|times| *times > 0)?;
    Some(
        Finding::information("pmem-dirty-shutdowns", &dimm.name)
            .what(format!("The module {} lost power {times} times before it had saved everything", dimm.name))
            .why("The last writes before may have been lost each time: check any database there")
            .sure(Sure::Medium, "the count covers the module's whole life")
            .type_in(format!("ndctl list -D -H -d {}", dimm.name)),
    )
}
