//! Mounts: /proc/self/mountinfo, and what ext4 says of its options only in /proc/fs/ext4.

use std::path::PathBuf;

use crate::root::Root;

/// File systems that keep nothing on any device, whatever their mount's source says.
const IN_MEMORY: [&str; 3] = ["tmpfs", "ramfs", "devtmpfs"];
/// File systems of the network.
const NETWORK: [&str; 8] = ["nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "afs", "lustre"];

/// One mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// The kernel's number of it.
    pub id: u64,
    /// Number of the device; major 0 if it is on none, or on several.
    pub dev: (u32, u32),
    /// Where it is.
    pub point: PathBuf,
    /// `ext4`, `tmpfs` …
    pub kind: String,
    /// What the mount calls its source: a word that not every file system reads.
    pub source: String,
    /// Options of the mount and of the file system.
    pub options: Vec<String>,
    /// False if it is ext4 without a journal.
    pub journal: bool,
}

impl Mount {
    /// True if it has this option.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|o| o == option)
    }

    /// The value of an option.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// True if it is RAM.
    pub fn in_memory(&self) -> bool {
        IN_MEMORY.contains(&self.kind.as_str())
    }

    /// True if another host has the files.
    pub fn on_network(&self) -> bool {
        NETWORK.contains(&self.kind.as_str())
    }

    /// True if it holds files that somebody may keep: no kernel interface, no image that is only read.
    pub fn holds_files(&self) -> bool {
        let backed = self.source.starts_with('/') || self.kind == "zfs" || self.on_network();
        (backed || self.in_memory() || self.kind == "overlay") && !self.has("ro") && self.kind != "devtmpfs"
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
    let mut mounts: Vec<Mount> = text.lines().filter_map(parse).collect();
    for mount in mounts.iter_mut().filter(|mount| mount.kind == "ext4") {
        let name = mount.source.rsplit('/').next().unwrap_or_default();
        let Some(options) = root.text(format!("/proc/fs/ext4/{name}/options")) else { continue };
        // A journal has a mode; without one the kernel names none.
        mount.journal = options.lines().any(|option| option.starts_with("data="));
        mount.options.extend(options.lines().map(str::to_owned));
        mount.options.sort();
        mount.options.dedup();
    }
    mounts
}

fn parse(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut words = left.split(' ');
    let id = words.next()?.parse().ok()?;
    let (major, minor) = words.nth(1)?.split_once(':')?;
    let point = plain(words.nth(1)?);
    let own = words.next()?;
    let mut rest = right.split(' ');
    let (kind, source) = (rest.next()?, rest.next()?);
    let options = own.split(',').chain(rest.next().unwrap_or_default().split(','));
    Some(Mount {
        id,
        dev: (major.parse().ok()?, minor.parse().ok()?),
        point: point.into(),
        kind: kind.into(),
        source: plain(source),
        options: options.map(str::to_owned).collect(),
        journal: true,
    })
}

/// The kernel writes blanks and the like as three octal digits.
fn plain(text: &str) -> String {
    let pairs = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    pairs.iter().fold(text.to_owned(), |text, (code, is)| text.replace(code, is))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let line =
            "36 35 259:1 / /mnt/a\\040b rw,noatime shared:1 - ext4 /dev/pmem0 rw,dax=always,data=ordered";
        let mount = parse(line).expect("a mount");
        assert_eq!((mount.id, mount.dev), (36, (259, 1)));
        assert_eq!((mount.point.to_str(), mount.kind.as_str()), (Some("/mnt/a b"), "ext4"));
        assert!(mount.has("noatime") && mount.value("data") == Some("ordered"), "{mount:?}");
        assert_eq!(mount.dax(), Some("dax=always"));
        assert!(mount.holds_files() && !mount.in_memory());
        assert!(parse("nonsense").is_none());
    }
}
