//! RAM: how much, how much of it is in large pages, swap, and the nodes it belongs to.

use std::collections::BTreeMap;

use crate::root::Root;

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Bytes in pages that were reserved as huge ones.
    pub huge: u64,
    /// Bytes of one of them.
    pub huge_page: u64,
    /// Whether ordinary memory gets large pages: `always`, `madvise`, `never`.
    pub transparent: Option<String>,
    /// vm.overcommit_memory
    pub overcommit: Option<u32>,
    /// vm.swappiness
    pub swappiness: Option<u32>,
    /// Areas to swap to.
    pub swaps: Vec<Swap>,
    /// Memory nodes.
    pub nodes: Vec<Node>,
    /// kernel.numa_balancing; 2 moves pages between tiers.
    pub balancing: Option<u32>,
    /// What the kernel does with memory that appears: `online`, `online_movable`, `offline`.
    pub auto_online: Option<String>,
}

/// An area to swap to.
#[derive(Clone, Debug, Default)]
pub struct Swap {
    /// The device or file.
    pub path: String,
    /// Bytes in use.
    pub used: u64,
}

/// A memory node.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Its number.
    pub number: u32,
    /// It has processors.
    pub has_cpus: bool,
    /// Distances to every node, its own (10) included.
    pub distances: Vec<u32>,
}

/// Reads it.
pub fn read(root: &Root) -> Memory {
    let text = root.text("/proc/meminfo").unwrap_or_default();
    let known = meminfo(&text);
    let of = |name: &str| known.get(name).copied().unwrap_or(0);
    let huge_page = of("Hugepagesize") * 1024;
    Memory {
        huge: of("HugePages_Total") * huge_page,
        huge_page,
        transparent: root.text("/sys/kernel/mm/transparent_hugepage/enabled").and_then(|all| bracketed(&all)),
        overcommit: root.number("/proc/sys/vm/overcommit_memory"),
        swappiness: root.number("/proc/sys/vm/swappiness"),
        swaps: root.text("/proc/swaps").unwrap_or_default().lines().skip(1).filter_map(swap).collect(),
        nodes: root.names("/sys/devices/system/node").iter().filter_map(|name| node(root, name)).collect(),
        balancing: root.number("/proc/sys/kernel/numa_balancing"),
        auto_online: root.text("/sys/devices/system/memory/auto_online_blocks"),
    }
}

fn meminfo(text: &str) -> BTreeMap<&str, u64> {
    let pair = |line| {
        let (name, rest) = str::split_once(line, ':')?;
        Some((name, rest.split_whitespace().next()?.parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

fn bracketed(all: &str) -> Option<String> {
    Some(all.split_once('[')?.1.split_once(']')?.0.to_owned())
}

fn swap(line: &str) -> Option<Swap> {
    let mut words = line.split_whitespace();
    let path = words.next()?.to_owned();
    Some(Swap { path, used: words.nth(2)?.parse::<u64>().ok()? * 1024 })
}

fn node(root: &Root, name: &str) -> Option<Node> {
    let number = name.strip_prefix("node")?.parse().ok()?;
    let at = format!("/sys/devices/system/node/{name}");
    let distances = root.text(format!("{at}/distance")).unwrap_or_default();
    Some(Node {
        number,
        has_cpus: root.text(format!("{at}/cpulist")).is_some_and(|list| !list.is_empty()),
        distances: distances.split_whitespace().filter_map(|word| word.parse().ok()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_are_understood() {
        let known = meminfo("MemTotal:       24684096 kB\nHugePages_Total:     12\n");
        assert_eq!((known["MemTotal"], known["HugePages_Total"]), (24_684_096, 12));
        let swap = swap("/dev/dm-1   partition\t8388604\t1024\t-2").expect("an area");
        assert_eq!((swap.path.as_str(), swap.used), ("/dev/dm-1", 1 << 20));
        assert_eq!(bracketed("always [madvise] never").as_deref(), Some("madvise"));
    }
}
