//! What a directory lies on, proved: file system, device and what the device is mapped to, DAX.
//!
//! Input: a path, which exists. Output: a [`Placement`], asked of the kernel about the opened directory itself
//! (`mnt_id` of its descriptor), so that mounts over mounts do not deceive. A mount that looks like a device and is
//! none (`mount -t tmpfs /dev/pmem0 DIR`) is a [`Placement::decoy`]. Nothing is changed.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};
use seawall_media::mounts::{self, Mount, is_in_memory};
use serde::{Deserialize, Serialize};

/// What a path lies on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The path, links followed.
    pub path: PathBuf,
    /// `ext4`, `tmpfs` …
    pub file_system: String,
    /// What the mount calls its source: a word that not every file system reads.
    pub source: String,
    /// Where it is mounted.
    pub mounted_at: PathBuf,
    /// The block device under it and what that is mapped to, topmost first: `loop0`, `/var/x.img`.
    pub mapping: Vec<String>,
    /// The file system says of this very directory that it is accessed directly.
    pub dax: bool,
}

impl Placement {
    /// What `path` lies on.
    ///
    /// # Errors
    /// If it cannot be opened, or the kernel does not say.
    pub fn of(path: &Path) -> io::Result<Self> {
        let real = fs::canonicalize(path)?;
        // The path is enough to ask; what lies there need not be readable.
        let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
        let opened: File = rustix::fs::open(&real, flags, rustix::fs::Mode::empty())?.into();
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", opened.as_raw_fd()))?;
        let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:")).unwrap_or_default();
        let id = id.trim().parse();
        let list = fs::read("/proc/self/mountinfo")?;
        let unknown = || io::Error::other(format!("{}: the kernel names no mount for it", real.display()));
        let mount = mounts::parse(&list).find(|m| Ok(m.id) == id).ok_or_else(unknown)?;
        let attributes = statx(&opened, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?.stx_attributes;
        let dax = attributes.contains(StatxAttributes::DAX) || is_dax(&mount);
        let mapping = if mount.in_memory() { Vec::new() } else { mapping(mount.dev) };
        Ok(Self {
            path: real,
            file_system: mount.kind,
            source: mount.source,
            mounted_at: mount.point,
            mapping,
            dax,
        })
    }

    /// Whether it lies in memory that ends with the machine.
    pub fn in_memory(&self) -> bool {
        is_in_memory(&self.file_system)
    }

    /// If the mount names a device that the file system does not use: what is wrong, and what to do.
    pub fn decoy(&self) -> Option<String> {
        let named = self.source.starts_with("/dev/").then_some(&self.source)?;
        self.in_memory().then(|| {
            format!(
                "{} is {}, which is RAM: it was mounted with {named} as its source, and ignores it. Nothing lies on {named}. \
                 Unmount {}, make a file system on the device and mount that (mkfs.ext4 {named}; mount -o dax=always {named} {})",
                self.path.display(),
                self.file_system,
                self.mounted_at.display(),
                self.mounted_at.display()
            )
        })
    }

    /// In one line.
    pub fn in_words(&self) -> String {
        let on = if self.in_memory() { "RAM".to_owned() } else { self.mapping.join(" → ") };
        let on = if on.is_empty() { self.source.clone() } else { on };
        format!("{} on {on}, DAX: {}", self.file_system, if self.dax { "yes" } else { "no" })
    }

    /// Whether two lie on the same device at the end.
    pub fn shares_device(&self, other: &Self) -> bool {
        let last = |p: &Self| p.mapping.iter().rev().find(|m| !m.starts_with('/')).cloned();
        last(self).is_some() && last(self) == last(other)
    }
}

/// Whether all files of a mount are accessed directly.
fn is_dax(mount: &Mount) -> bool {
    mount.has("dax") || mount.has("dax=always")
}

/// The device with this number, and what it is made of: partitions' disks, parts of a mapped device, a loop's file
/// and what that lies on.
fn mapping((major, minor): (u32, u32)) -> Vec<String> {
    let mut chain = Vec::new();
    let mut next = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok();
    while let Some(sys) = next.take() {
        let Some(name) = sys.file_name().map(|n| n.to_string_lossy().into_owned()) else { break };
        if chain.contains(&name) || chain.len() > 8 {
            break;
        }
        chain.push(name);
        if let Ok(file) = fs::read_to_string(sys.join("loop/backing_file")) {
            let file = PathBuf::from(file.trim());
            chain.push(file.display().to_string());
            let below = Placement::of(&file).map(|p| p.mapping).unwrap_or_default();
            chain.extend(below);
        } else if sys.join("partition").exists() {
            next = sys.parent().map(Path::to_owned);
        } else {
            let slaves = fs::read_dir(sys.join("slaves")).into_iter().flatten().flatten();
            next = slaves.map(|s| s.path()).find_map(|s| fs::canonicalize(s).ok());
        }
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(line: &str) -> Placement {
        let mount = Mount::parse(line.as_bytes()).expect("a mount");
        Placement {
            path: "/mnt/log/x".into(),
            dax: is_dax(&mount),
            file_system: mount.kind,
            source: mount.source,
            mounted_at: mount.point,
            mapping: Vec::new(),
        }
    }

    #[test]
    fn a_line_of_mountinfo_is_understood() {
        let found = placed("36 35 259:1 / /mnt/a\\040b rw,noatime shared:1 - ext4 /dev/pmem0 rw,dax=always");
        assert_eq!((found.mounted_at.to_str(), found.file_system.as_str()), (Some("/mnt/a b"), "ext4"));
        assert!(found.dax && found.decoy().is_none(), "{found:?}");
        assert!(!placed("36 35 259:1 / /mnt rw - ext4 /dev/pmem0 rw,dax=never").dax);
    }

    #[test]
    fn memory_that_was_given_a_device_is_called_memory() {
        let found = placed("40 35 0:50 / /dev/shm rw - tmpfs /dev/pmem0 rw,size=25165824k");
        let said = found.decoy().expect("refused");
        assert!(
            said.contains("tmpfs, which is RAM") && said.contains("Nothing lies on /dev/pmem0"),
            "{said}"
        );
        assert!(found.in_words().contains("tmpfs on RAM"), "{}", found.in_words());
        assert!(placed("40 35 0:50 / /dev/shm rw - tmpfs tmpfs rw").decoy().is_none());
    }

    #[test]
    fn the_mount_under_a_directory_is_the_one_it_is_on() {
        let found = Placement::of(Path::new("/dev/shm")).expect("placed");
        assert!(found.in_memory() && found.mapping.is_empty(), "{found:?}");
    }
}
