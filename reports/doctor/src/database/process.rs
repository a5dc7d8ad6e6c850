//! The server's process, where it runs and we may look: what it loaded, and how much of it is swapped out.

use crate::root::Root;

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Libraries and files that it has mapped.
    pub mapped: Vec<String>,
    /// Bytes of it that are swapped out.
    pub swapped: u64,
}

/// The process of this number, if it is there. The name guards against a number that another program has now.
pub fn read(root: &Root, pid: u32, names: &[&str]) -> Option<Process> {
    let at = format!("/proc/{pid}");
    let name = root.text(format!("{at}/comm"))?;
    if !names.iter().any(|begin| name.starts_with(begin)) {
        return None;
    }
    let status = root.text(format!("{at}/status")).unwrap_or_default();
    let swapped =
        status.lines().find_map(|line| line.strip_prefix("VmSwap:")?.split_whitespace().next()?.parse().ok());
    let maps = root.text(format!("{at}/maps")).unwrap_or_default();
    let mut mapped: Vec<String> =
        maps.lines().filter_map(|line| Some(line[line.find('/')?..].to_owned())).collect();
    mapped.sort();
    mapped.dedup();
    Some(Process { pid, mapped, swapped: swapped.unwrap_or(0) * 1024 })
}
