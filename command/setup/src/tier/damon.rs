//! DAMON brings back what is in use, shared memory too: it watches the slower memory by its physical addresses, so it sees
//! accesses of every process, and NUMA balancing's rule for shared mappings does not apply.
//!
//! It takes Linux 6.11 (`migrate_hot`), and nobody else who uses DAMON's files.

use std::path::PathBuf;

use super::nodes::{Nodes, text};
use crate::host::Host;
use crate::kernel::version;
use crate::plan::{Act, Step};
use crate::unit;

const AT: &str = "/sys/kernel/mm/damon/admin/kdamonds";
const BLOCK: &str = "/sys/devices/system/memory/block_size_bytes";
const UNIT: &str = "seawall-tier.service";
/// Microseconds: how often it looks, how long it adds up, how often it looks for new memory.
const INTERVALS: [(&str, &str); 3] = [("sample_us", "5000"), ("aggr_us", "100000"), ("update_us", "1000000")];
/// Looks in that time.
const LOOKS: &str = "20";
/// No end.
const ALL: &str = "18446744073709551615";
/// Bytes a second that may be moved.
const QUOTA: &str = "268435456";

/// The steps, if this kernel can.
pub fn steps(host: &dyn Host, nodes: &Nodes) -> Vec<Step> {
    let root = host.root();
    let used = root.number::<u32>(format!("{AT}/nr_kdamonds")).unwrap_or(0) > 0;
    let ranges = ranges(host, &nodes.slow());
    let fast = nodes.nodes.iter().find(|node| node.has_cpus).map(|node| node.number);
    let (Some(fast), true) = (fast, nodes.has_damon && !used && can(host) && !ranges.is_empty()) else {
        return Vec::new();
    };
    let set =
        |path: &str, value: &str| Act::Set { path: PathBuf::from(AT).join(path), value: value.to_owned() };
    let on = Act::All(settings(&ranges, fast).iter().map(|(path, value)| set(path, value)).collect());
    let off = Act::All(vec![set("0/state", "off"), set("nr_kdamonds", "0")]);
    let title =
        format!("pages in use on node {} go to node {fast}, shared memory too (DAMON)", text(&nodes.slow()));
    let kept = unit::runs(root).then(|| at_start(&on));
    std::iter::once(Step::new(title, on).undo(off)).chain(kept).collect()
}

/// Linux 6.11
fn can(host: &dyn Host) -> bool {
    let release = host.root().text("/proc/sys/kernel/osrelease").unwrap_or_default();
    version(&release).is_some_and(|version| version >= (6, 11))
}

/// Documentation/admin-guide/mm/damon/usage.rst, in the order in which directories appear.
fn settings(ranges: &[(u64, u64)], fast: u32) -> Vec<(String, String)> {
    let (context, scheme) = ("0/contexts/0", "0/contexts/0/schemes/0");
    let mut all: Vec<(String, String)> = Vec::new();
    let mut set = |path: String, value: &str| all.push((path, value.to_owned()));
    set("nr_kdamonds".into(), "1");
    set("0/contexts/nr_contexts".into(), "1");
    set(format!("{context}/operations"), "paddr");
    INTERVALS
        .iter()
        .for_each(|(name, value)| set(format!("{context}/monitoring_attrs/intervals/{name}"), value));
    set(format!("{context}/targets/nr_targets"), "1");
    set(format!("{context}/targets/0/regions/nr_regions"), &ranges.len().to_string());
    for (number, (start, end)) in ranges.iter().enumerate() {
        set(format!("{context}/targets/0/regions/{number}/start"), &start.to_string());
        set(format!("{context}/targets/0/regions/{number}/end"), &end.to_string());
    }
    set(format!("{context}/schemes/nr_schemes"), "1");
    set(format!("{scheme}/action"), "migrate_hot");
    set(format!("{scheme}/target_nid"), &fast.to_string());
    // Whatever its size and age, if it was touched at all.
    for (name, least, most) in [("sz", "4096", ALL), ("nr_accesses", "1", LOOKS), ("age", "0", "4294967295")]
    {
        set(format!("{scheme}/access_pattern/{name}/max"), most);
        set(format!("{scheme}/access_pattern/{name}/min"), least);
    }
    set(format!("{scheme}/quotas/bytes"), QUOTA);
    set(format!("{scheme}/quotas/reset_interval_ms"), "1000");
    set("0/state".into(), "on");
    all
}

fn at_start(on: &Act) -> Step {
    let text = format!(
        "[Unit]\n\
         Description=Pages in use go to fast memory (seawall tier setup)\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         ExecStart=/bin/sh -ec '{}'\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        on.lines().join(" && ")
    );
    unit::enabled("the same after each start", UNIT, &text)
}

/// Physical addresses of these nodes' memory: its blocks, neighbours joined.
fn ranges(host: &dyn Host, nodes: &[u32]) -> Vec<(u64, u64)> {
    let root = host.root();
    let size = root.text(BLOCK).and_then(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok());
    let Some(size) = size else { return Vec::new() };
    let of_node = |node: &u32| root.names(format!("/sys/devices/system/node/node{node}"));
    let mut blocks: Vec<u64> =
        nodes.iter().flat_map(of_node).filter_map(|name| name.strip_prefix("memory")?.parse().ok()).collect();
    blocks.sort_unstable();
    let mut found: Vec<(u64, u64)> = Vec::new();
    for block in blocks {
        let (start, end) = (block * size, (block + 1) * size);
        match found.last_mut().filter(|last| last.1 == start) {
            Some(last) => last.1 = end,
            None => found.push((start, end)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    #[test]
    fn blocks_that_follow_each_other_are_one_range() {
        let bench = Bench::new(&[(BLOCK, "8000000")]);
        for block in ["memory40", "memory41", "memory9", "meminfo"] {
            bench.write(&format!("/sys/devices/system/node/node2/{block}/x"), "");
        }
        let mib = 128 << 20;
        assert_eq!(ranges(&bench, &[2]), [(9 * mib, 10 * mib), (40 * mib, 42 * mib)]);
    }
}
