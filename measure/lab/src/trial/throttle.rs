//! A device that the kernel holds to so many writes a second: a disk of a known speed, whatever lies below it.
//!
//! By the control groups' block controller: `blkio` of their first version, where the group of all else counts too
//! (what the kernel itself writes for a file system), or `io` of their second, for the outermost group we are in.
//! Dropping a [`Throttle`] takes it back. That it works is proved, not believed ([`prove`]).

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

const ROOT: &str = "/sys/fs/cgroup";
const FIRST: &str = "blkio.throttle.write_iops_device";
const SECOND: &str = "io.max";
/// The proof: so many synced writes on a device held to so many a second.
const PROOF_WRITES: u64 = 20;
const PROOF_RATE: u64 = 50;
/// They take 400 ms, but for what the kernel lets pass at once; a disk without a limit is done long before.
const PROOF_TIME: Duration = Duration::from_millis(250);

/// While it lives, the device takes no more.
pub struct Throttle {
    /// Files, and what takes the limit back.
    set: Vec<(PathBuf, String)>,
}

impl Throttle {
    /// Holds a device, named by its numbers (`7:0`), to so many writes a second.
    ///
    /// # Errors
    /// If this machine has no control groups that can do so, or they are not ours to change.
    pub fn hold(device: &str, writes_per_second: u64) -> Result<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup")
            .context("cannot tell which control group the process is in")?;
        let files = limits(&groups, |path| path.exists());
        ensure!(
            !files.is_empty(),
            "no control group here can hold a device to a rate (neither {FIRST} nor {SECOND})"
        );
        let mut throttle = Throttle { set: Vec::new() };
        for file in files {
            let (limit, off) = if file.ends_with(SECOND) {
                (format!("{device} wiops={writes_per_second}"), format!("{device} wiops=max"))
            } else {
                (format!("{device} {writes_per_second}"), format!("{device} 0"))
            };
            fs::write(&file, limit)
                .with_context(|| format!("cannot hold device {device} to a rate by {}", file.display()))?;
            throttle.set.push((file, off));
        }
        Ok(throttle)
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        for (file, off) in &self.set {
            if let Err(error) = fs::write(file, off) {
                errln!("seawall-lab: cannot take the limit in {} back: {error}", file.display());
            }
        }
    }
}

/// Shows that a file in this directory, on this device, is written at the rate it is held to.
///
/// # Errors
/// If the kernel does not hold the device.
pub fn prove(device: &str, dir: &Path) -> Result<()> {
    let path = dir.join("seawall-lab-proof");
    let file = OpenOptions::new().create(true).write(true).truncate(true).open(&path)?;
    let sync = |n: u64| file.write_all_at(&[7; 4096], n * 4096).and_then(|()| file.sync_data());
    (0..PROOF_WRITES).try_for_each(sync)?;
    let held = Throttle::hold(device, PROOF_RATE)?;
    let begin = Instant::now();
    (0..PROOF_WRITES).try_for_each(sync)?;
    let took = begin.elapsed();
    drop(held);
    fs::remove_file(&path)?;
    ensure!(
        took >= PROOF_TIME,
        "the kernel does not hold device {device} to a rate: {PROOF_WRITES} synced writes at {PROOF_RATE} a second took {} ms",
        took.as_millis()
    );
    Ok(())
}

/// Where limits are written, as `/proc/self/cgroup` has it.
fn limits(groups: &str, exists: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let of = |wanted: fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            wanted(controllers).then(|| path.trim_start_matches('/').to_owned())
        })
    };
    if let Some(own) = of(|controllers| controllers.split(',').any(|c| c == "blkio")) {
        let root = Path::new(ROOT).join("blkio");
        let mut files = vec![root.join(FIRST), root.join(own).join(FIRST)];
        files.dedup();
        files.retain(|file| exists(file));
        if !files.is_empty() {
            return files;
        }
    }
    let Some(own) = of(str::is_empty) else { return Vec::new() };
    let mut group = PathBuf::from(ROOT);
    for part in Path::new(&own) {
        group.push(part);
        if exists(&group.join(SECOND)) {
            return vec![group.join(SECOND)];
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_where_the_kernel_looks() {
        let first = "7:blkio:/box\n1:cpu:/box\n0::/\n";
        let both = [
            "/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device",
            "/sys/fs/cgroup/blkio/box/blkio.throttle.write_iops_device",
        ];
        assert_eq!(limits(first, |_| true), both.map(PathBuf::from));
        assert_eq!(limits("7:blkio:/\n", |_| true).len(), 1);
        let second = "0::/user.slice/user-0.slice\n";
        assert_eq!(limits(second, |_| true), [PathBuf::from("/sys/fs/cgroup/user.slice/io.max")]);
        assert!(limits(second, |_| false).is_empty());
    }
}
