//! What is mounted.

use std::path::Path;

use seawall_doctor::Root;
use seawall_media::mounts::{self, Mount};

/// The mounts.
pub fn all(root: &Root) -> Vec<Mount> {
    let text = root.bytes("/proc/self/mountinfo").unwrap_or_default();
    mounts::parse(&text).collect()
}

/// The mount at a point.
pub fn at(root: &Root, point: &Path) -> Option<Mount> {
    all(root).into_iter().rfind(|mount| mount.point == point)
}
