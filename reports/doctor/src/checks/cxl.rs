//! CXL memory: volatile or persistent, and what the kernel does with it.

use crate::finding::{Finding, Sure};
use crate::machine::{Cxl, DaxDevice, MemoryDevice};
use crate::view::View;

/// The findings. Memory is of the whole machine.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    if !view.is_whole && view.database.is_none() {
        return Vec::new();
    }
    let cxl = &view.machine.cxl;
    let mut found: Vec<Finding> =
        cxl.memory.iter().filter_map(|device| persistent(device, cxl, view)).collect();
    found.extend(cxl.memory.iter().filter_map(volatile));
    found.extend(cxl.dax.iter().filter(|device| device.as_memory).flat_map(|device| as_memory(device, view)));
    found
}

fn persistent(device: &MemoryDevice, cxl: &Cxl, view: &View<'_>) -> Option<Finding> {
    let used = view.machine.pmem.providers.iter().any(|provider| provider == "CXL" || provider == "cxl");
    let used = used && !view.machine.pmem.regions.is_empty() || cxl.dax.iter().any(|dax| dax.of_pmem);
    (device.persistent > 0 && !used).then(|| {
        Finding::information("cxl-persistent-unused", &device.name)
            .what(format!(
                "{} has {} MiB of persistent CXL memory that no region uses",
                device.name,
                device.persistent >> 20
            ))
            .why("A log on it would survive a power cut, if the platform flushes its caches to it (GPF)")
            .sure(Sure::High, "whether the platform does so is not visible from here")
            .type_in(format!("cxl create-region -t pmem -m {}", device.name))
            .type_in("ndctl create-namespace --mode=fsdax")
    })
}

fn volatile(device: &MemoryDevice) -> Option<Finding> {
    (device.volatile > 0 && device.persistent == 0).then(|| {
        Finding::information("cxl-volatile", &device.name)
            .what(format!("{} is volatile CXL memory, {} MiB", device.name, device.volatile >> 20))
            .why("A power cut empties it: it is for caches, not for a log")
            .type_in("cxl list -M")
    })
}

fn as_memory(device: &DaxDevice, view: &View<'_>) -> Vec<Finding> {
    let memory = &view.machine.memory;
    let tiered = memory.balancing.is_some_and(|bits| bits & 2 != 0);
    let slow = (!tiered).then(|| {
        let node = device.node.map_or_else(|| "a node".to_owned(), |node| format!("node {node}"));
        Finding::speed("slow-memory-untiered", &device.name)
            .what(format!("{} ({} MiB) is ordinary memory as {node}, and the kernel moves no pages between tiers", device.name, device.bytes >> 20))
            .why("Buffers land on it by chance and stay: the same query is fast or slow depending on where its pages are")
            .sure(Sure::Medium, "a server that is bound to nodes is not affected")
            .type_in("sysctl -w kernel.numa_balancing=2")
            .type_in("echo 1 > /sys/kernel/mm/numa/demotion_enabled")
    });
    let fixed = (memory.auto_online.as_deref() == Some("online")).then(|| {
        Finding::information("memory-not-removable", &device.name)
            .what(format!(
                "{} was brought online as memory for everything (auto_online_blocks is online)",
                device.name
            ))
            .why("The kernel's own data may lie on it: it is slower, and cannot be taken offline again")
            .sure(Sure::Medium, "the setting may have been different when the memory was brought online")
            .type_in(format!(
                "daxctl reconfigure-device --mode=system-ram --human {}      # online_movable",
                device.name
            ))
    });
    let lost = device.of_pmem.then(|| {
        Finding::information("pmem-as-memory", &device.name)
            .what(format!("{} is persistent memory that is used as ordinary memory", device.name))
            .why("Its content no longer survives a restart")
            .type_in(format!("daxctl reconfigure-device --mode=devdax {}", device.name))
    });
    [slow, fixed, lost].into_iter().flatten().collect()
}
