//! The machine a figure was measured on.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use seawall_awr::{Idle, clock, memory};
use seawall_media::ordered;
use serde::{Deserialize, Serialize};

use crate::process;

/// A short description for reports.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    pub cpus: usize,
    pub memory_mb: u64,
    pub kernel: String,
    /// The distribution.
    #[serde(default)]
    pub system: String,
    /// File system and device under the data.
    pub filesystem: String,
    /// What an idle processor does. On a virtual machine whose processors halt at once a wake-up takes tens of
    /// microseconds: figures with and without are not comparable.
    #[serde(default)]
    pub idle: String,
}

impl Machine {
    /// Describes this one; what cannot be found is left empty.
    pub fn describe(data: &Path) -> Self {
        Machine {
            cpu: processor(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mb: memory("MemTotal").unwrap_or(0) >> 20,
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            system: system(),
            filesystem: filesystem(data),
            idle: Idle::find().to_string(),
        }
    }
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name")).unwrap_or_default();
    line.split_once(':').map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
}

fn system() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or_default().trim_matches('"').to_owned()
}

/// Percent of all CPUs' time that was used while we waited this long: by others, when we do nothing.
pub fn busy(look: Duration) -> Result<f64> {
    let (all, idle) = cpu_time();
    process::pause(look)?;
    let (all_after, idle_after) = cpu_time();
    let passed = all_after.saturating_sub(all).max(1) as f64;
    Ok((1.0 - idle_after.saturating_sub(idle) as f64 / passed).clamp(0.0, 1.0) * 100.0)
}

/// Ticks of all CPUs, and those in which they were idle (waiting for a disk is that).
fn cpu_time() -> (u64, u64) {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = line.split_whitespace().skip(1).filter_map(|t| t.parse().ok()).collect();
    (ticks.iter().take(8).sum(), ticks.iter().skip(3).take(2).sum())
}

/// The time in UTC, to the minute.
pub fn now() -> String {
    let now = clock::utc(clock::wall_ms());
    format!("{} UTC", &now[..now.len() - ":00".len()])
}

/// The mount with the longest matching path wins; of equal ones the last.
fn filesystem(path: &Path) -> String {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mut best = (0, "", "");
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (Some(device), Some(mount), Some(kind)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if path.starts_with(mount) && mount.len() >= best.0 {
            best = (mount.len(), kind, device);
        }
    }
    let (_, kind, device) = best;
    if kind.is_empty() { String::new() } else { format!("{kind}{} on {device}", journal(kind, path)) }
}

/// Whoever syncs on an ext4 without a journal of its own waits for no commit of it: figures of both are not comparable.
fn journal(kind: &str, path: &Path) -> &'static str {
    let has_journal = || ordered::has_journal(fs::metadata(path).ok()?.dev());
    if kind == "ext4" && has_journal() == Some(false) { " without a journal" } else { "" }
}

/// What sysfs knows of the block device that a path lies on; not there where it lies on none.
pub fn block_device(path: &Path) -> Option<PathBuf> {
    Some(ordered::block_device(fs::metadata(path).ok()?.dev()))
}
