//! A server on the right nodes: numactl, with what was meant.

use seawall_doctor::Root;

use super::nodes::{Nodes, text};
use crate::error::Error;

/// What is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// As the kernel does it: fast memory first; what is not in use goes to slower memory, what is comes back.
    Tiered,
    /// Fast memory only.
    Fast,
    /// Slower memory as long as there is any: a large pool leaves the fast memory to others.
    Large,
    /// Page after page over all nodes.
    Spread,
}

/// What to put before the command.
///
/// # Errors
/// The machine has no such memory, or the kernel does not do its part.
pub fn prefix(nodes: &Nodes, policy: Policy) -> Result<Vec<String>, Error> {
    let (fast, slow) = (nodes.fast(), nodes.slow());
    if slow.is_empty() && policy != Policy::Spread && policy != Policy::Fast {
        return Err(Error::refused("all memory here is of one kind: seawall tier shows it"));
    }
    let numactl =
        |option: &str, nodes: &[u32]| vec!["numactl".to_owned(), format!("{option}={}", text(nodes))];
    match policy {
        // A policy of its own would keep the kernel from moving pages back.
        Policy::Tiered if nodes.promotes && nodes.demotes == Some(true) => Ok(Vec::new()),
        Policy::Tiered => Err(Error::refused(
            "the kernel does not move pages between kinds of memory: seawall tier setup turns that on",
        )),
        Policy::Fast => Ok(numactl("--membind", &fast)),
        Policy::Large => Ok(numactl("--preferred-many", &slow)),
        Policy::Spread => Ok(vec!["numactl".into(), "--interleave=all".into()]),
    }
}

/// True if this kernel counts pages that it moved between kinds, and how many: promoted, demoted.
pub fn moved(root: &Root) -> Option<(u64, u64)> {
    let text = root.text("/proc/vmstat")?;
    let count = |names: &[&str]| -> Option<u64> {
        let found = text.lines().filter_map(|line| {
            let (name, number) = line.split_once(' ')?;
            names.contains(&name).then(|| number.parse::<u64>().ok()).flatten()
        });
        let all: Vec<u64> = found.collect();
        (!all.is_empty()).then(|| all.iter().sum())
    };
    let demoted = ["pgdemote_kswapd", "pgdemote_direct", "pgdemote_khugepaged", "pgdemote_proactive"];
    Some((count(&["pgpromote_success"])?, count(&demoted)?))
}
