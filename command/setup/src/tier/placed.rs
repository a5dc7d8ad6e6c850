//! On which nodes a server's memory is: /proc/PID/numa_maps.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::Error;
use crate::tier::server;

/// Bytes of one kind of memory by node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// Memory that its processes share: PostgreSQL's shared_buffers. As the process that has most of it mapped sees it.
    pub shared: BTreeMap<u32, u64>,
    /// Memory of single processes: InnoDB's buffer pool, a heap.
    pub private: BTreeMap<u32, u64>,
}

/// Looks.
///
/// # Errors
/// There is no such server, or its memory may not be seen.
pub fn of(target: &str) -> Result<Placed, Error> {
    let mut placed = Placed::default();
    for pid in server::processes(target)? {
        let path = format!("/proc/{pid}/numa_maps");
        // One that has ended meanwhile has no memory.
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let one = parse(&text);
        if one.shared.values().sum::<u64>() > placed.shared.values().sum::<u64>() {
            placed.shared = one.shared;
        }
        one.private.into_iter().for_each(|(node, bytes)| *placed.private.entry(node).or_default() += bytes);
    }
    if placed == Placed::default() {
        return Err(Error::refused(
            "this kernel does not show which node a page is on (no NUMA), or you may not see it: try as root",
        ));
    }
    Ok(placed)
}

/// `7f… default anon=3 dirty=3 N0=2 N1=1 kernelpagesize_kB=4`
pub(super) fn parse(text: &str) -> Placed {
    let mut placed = Placed::default();
    for line in text.lines() {
        let number =
            |key: &str| line.split_whitespace().find_map(|word| word.strip_prefix(key)?.parse::<u64>().ok());
        let page = number("kernelpagesize_kB=").unwrap_or(4) << 10;
        let is_anonymous = line.contains(" anon=") || line.contains(" heap") || line.contains(" stack");
        // Mapped programs and files are the page cache's.
        let file = line.split_whitespace().find_map(|word| word.strip_prefix("file="));
        let is_shared = file.is_some_and(|file| server::SHARED.iter().any(|begin| file.starts_with(begin)));
        let kind = match () {
            () if is_shared => &mut placed.shared,
            () if is_anonymous => &mut placed.private,
            () => continue,
        };
        for word in line.split_whitespace() {
            let Some((node, pages)) = word.strip_prefix('N').and_then(|rest| rest.split_once('=')) else {
                continue;
            };
            let (Ok(node), Ok(pages)) = (node.parse::<u32>(), pages.parse::<u64>()) else { continue };
            *kind.entry(node).or_default() += pages * page;
        }
    }
    placed
}
