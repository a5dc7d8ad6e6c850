//! Mounts: as the kernel lists them, and what ext4 says of its options only in /proc/fs/ext4.

use std::ops::Deref;

use seawall_media::mounts::{self, Mount as Listed};

use crate::root::Root;

/// File systems of the network.
const NETWORK: [&str; 8] = ["nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "afs", "lustre"];
/// What of the kernel's is in memory and holds nobody's files.
const OF_THE_KERNEL: [&str; 2] = ["devtmpfs", "hugetlbfs"];

/// One mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// As the kernel lists it, with all its options.
    listed: Listed,
    /// False if it is ext4 without a journal.
    pub journal: bool,
}

impl Deref for Mount {
    type Target = Listed;

    fn deref(&self) -> &Listed {
        &self.listed
    }
}

impl Mount {
    /// True if another host has the files.
    pub fn on_network(&self) -> bool {
        NETWORK.contains(&self.kind.as_str())
    }

    /// True if it holds files that somebody may keep: no kernel interface, no image that is only read.
    pub fn holds_files(&self) -> bool {
        let backed = self.source.starts_with('/') || self.kind == "zfs" || self.on_network();
        (backed || self.in_memory() || self.kind == "overlay")
            && !self.has("ro")
            && !OF_THE_KERNEL.contains(&self.kind.as_str())
    }

    /// The option that asks for DAX, if there is one.
    pub fn dax(&self) -> Option<&str> {
        let asks = |option: &&String| matches!(option.as_str(), "dax" | "dax=always" | "dax=inode");
        self.options.iter().find(asks).map(String::as_str)
    }
}

/// Reads them.
pub fn read(root: &Root) -> Vec<Mount> {
    let text = root.text("/proc/self/mountinfo").unwrap_or_default();
    let mount = |listed| Mount { listed, journal: true };
    let mut mounts: Vec<Mount> = mounts::parse(text.as_bytes()).map(mount).collect();
    for Mount { listed, journal } in mounts.iter_mut().filter(|mount| mount.kind == "ext4") {
        let name = listed.source.rsplit('/').next().unwrap_or_default();
        let Some(options) = root.text(format!("/proc/fs/ext4/{name}/options")) else { continue };
        // A journal has a mode; without one the kernel names none.
        *journal = options.lines().any(|option| option.starts_with("data="));
        listed.options.extend(options.lines().map(str::to_owned));
        listed.options.sort();
        listed.options.dedup();
    }
    mounts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_files_is_told_from_the_kernel_s_own() {
        let mount =
            |line: &str| Mount { listed: Listed::parse(line.as_bytes()).expect("a mount"), journal: true };
        let pmem = mount("36 35 259:1 / /mnt rw,noatime - ext4 /dev/pmem0 rw,dax=always");
        assert_eq!(pmem.dax(), Some("dax=always"));
        assert!(pmem.holds_files() && !pmem.in_memory());
        assert!(mount("40 35 0:50 / /dev/shm rw - tmpfs tmpfs rw").holds_files());
        assert!(!mount("41 35 0:51 / /dev/hugepages rw - hugetlbfs hugetlbfs rw").holds_files());
        assert!(!mount("42 35 0:52 / /proc rw - proc proc rw").holds_files());
    }
}
