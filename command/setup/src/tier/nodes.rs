//! The memory nodes of a machine, by how near they are to processors, and what the kernel moves between them.

use seawall_doctor::machine::{self, Machine};
use serde::Serialize;

use crate::host::Host;

const NODES: &str = "/sys/devices/system/node";
const TIERS: &str = "/sys/devices/virtual/memory_tiering";
/// Bit of kernel.numa_balancing: pages in use go to the faster tier.
pub const TIERING: u32 = 2;

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Its number.
    pub number: u32,
    /// What it is made of, as far as is known.
    pub made_of: String,
    /// Bytes.
    pub bytes: u64,
    /// Bytes that nobody uses.
    pub free: u64,
    /// It has processors.
    pub has_cpus: bool,
    /// Distance from the nearest processors; 10 is their own.
    pub distance: Option<u32>,
    /// The kernel's tier; a lower number is faster.
    pub tier: Option<u32>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Nodes {
    /// The nodes that have memory.
    pub nodes: Vec<Node>,
    /// Pages in use go to the faster tier (kernel.numa_balancing has 2).
    pub promotes: bool,
    /// Pages that are not in use go to the slower tier instead of to the disk. `None`: this kernel cannot.
    pub demotes: Option<bool>,
    /// The kernel can watch accesses (DAMON).
    pub has_damon: bool,
}

impl Nodes {
    /// Reads them.
    pub fn read(host: &dyn Host) -> Self {
        let root = host.root();
        let demotion = root.text("/sys/kernel/mm/numa/demotion_enabled");
        let mut machine = Machine::read(root);
        // The kernel lists distances in this order.
        machine.memory.nodes.sort_by_key(|node| node.number);
        let nodes = machine.memory.nodes.iter().filter_map(|found| node(host, &machine, found)).collect();
        let balancing = machine.memory.balancing.unwrap_or(0);
        Self {
            nodes,
            promotes: balancing & TIERING != 0,
            demotes: demotion.map(|text| matches!(text.as_str(), "1" | "true")),
            has_damon: root.has("/sys/kernel/mm/damon/admin"),
        }
    }

    /// Nodes whose memory is the processors' own kind.
    pub fn fast(&self) -> Vec<u32> {
        let best = self.nodes.iter().filter_map(|node| node.tier).min();
        let is_fast = |node: &&Node| match best {
            Some(best) if self.has_slow() => node.tier == Some(best),
            _ => true,
        };
        self.nodes.iter().filter(is_fast).map(|node| node.number).collect()
    }

    /// The others.
    pub fn slow(&self) -> Vec<u32> {
        let fast = self.fast();
        self.nodes.iter().map(|node| node.number).filter(|number| !fast.contains(number)).collect()
    }

    /// Nodes without processors are in another tier, where the kernel knows tiers.
    fn has_slow(&self) -> bool {
        let tiers: std::collections::BTreeSet<u32> = self.nodes.iter().filter_map(|node| node.tier).collect();
        tiers.len() > 1
    }
}

fn node(host: &dyn Host, machine: &Machine, found: &machine::Node) -> Option<Node> {
    let (root, number) = (host.root(), found.number);
    let at = format!("{NODES}/node{number}");
    let meminfo = root.text(format!("{at}/meminfo")).unwrap_or_default();
    let field = |key: &str| {
        let line = meminfo.lines().find(|line| line.contains(key))?;
        line.split_whitespace().rev().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
    };
    let bytes = field("MemTotal:").filter(|bytes| *bytes > 0)?;
    Some(Node {
        number,
        made_of: made_of(machine, number),
        bytes,
        free: field("MemFree:").unwrap_or(0),
        has_cpus: found.has_cpus,
        distance: distance(machine, number),
        tier: tier(host, number),
    })
}

/// From any node with processors.
fn distance(machine: &Machine, to: u32) -> Option<u32> {
    let nodes = &machine.memory.nodes;
    let place = nodes.iter().position(|node| node.number == to)?;
    nodes.iter().filter(|node| node.has_cpus).filter_map(|node| node.distances.get(place).copied()).min()
}

fn tier(host: &dyn Host, number: u32) -> Option<u32> {
    let root = host.root();
    root.names(TIERS).iter().filter_map(|name| name.strip_prefix("memory_tier")?.parse::<u32>().ok()).find(
        |tier| {
            root.text(format!("{TIERS}/memory_tier{tier}/nodelist"))
                .is_some_and(|nodes| list(&nodes).contains(&number))
        },
    )
}

/// A dax device that became memory says which node.
fn made_of(machine: &Machine, number: u32) -> String {
    let is_its = |device: &&machine::DaxDevice| device.as_memory && device.node == Some(number);
    let Some(device) = machine.cxl.dax.iter().find(is_its) else { return "DRAM".into() };
    let kind = if device.of_pmem { "persistent memory" } else { "CXL or similar memory" };
    format!("{kind}, as memory ({})", device.name)
}

/// `0,2-4`
fn list(text: &str) -> Vec<u32> {
    let range = |part: &str| -> Option<std::ops::RangeInclusive<u32>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// The same the other way round.
pub fn text(nodes: &[u32]) -> String {
    nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}
